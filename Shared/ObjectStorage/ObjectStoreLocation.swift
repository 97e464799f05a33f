/// A bucket of a service that speaks the S3 protocol, and a prefix of all keys in it.
public struct ObjectStoreLocation: Sendable, Equatable {
    /// The position of the bucket's name in the address of requests.
    public enum Style: String, Sendable, CaseIterable {
        /// `https://endpoint/bucket/key`, which every service understands.
        case path
        /// `https://bucket.endpoint/key`, which Amazon prefers.
        case virtualHost
    }

    /// The name of the bucket.
    public let bucket: String
    /// The beginning of all keys, without a slash at either end; empty for none.
    public let prefix: String
    /// `http` or `https`.
    public let scheme: String
    /// The host of the endpoint, with its port if it is not the scheme's default.
    public let host: String
    public let style: Style
    /// The region in signatures.
    public let region: String

    /// - Parameters:
    ///   - url: `s3://bucket/prefix`
    ///   - endpoint: `https://host:port`; nil for Amazon's of the region
    ///   - style: nil for `path` with an endpoint, `virtualHost` without
    /// - Throws: ``ObjectStoreError`` with the problem ``ObjectStoreProblem/invalidSettings``
    public init(
        url: String,
        endpoint: String? = nil,
        style: Style? = nil,
        region: String = "us-east-1"
    ) throws(ObjectStoreError) {
        guard url.hasPrefix("s3://") else { throw .invalid("\(url) does not begin with s3://") }
        let parts = url.dropFirst(5).split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        guard let bucket = parts.first, (3...63).contains(bucket.utf8.count),
            bucket.utf8.allSatisfy({ Self.isBucketCharacter($0) })
        else {
            throw .invalid("\(url) names no bucket: s3://bucket/prefix, with 3 to 63 of a-z, 0-9, - and .")
        }
        let prefix = parts.dropFirst().joined(separator: "/")
        guard prefix.utf8.count <= 512, !parts.contains(".."), !parts.contains(".") else {
            throw .invalid("the prefix of \(url) is not a key of at most 512 bytes")
        }
        guard !region.isEmpty, region.utf8.allSatisfy({ Self.isBucketCharacter($0) }) else {
            throw .invalid("\(region) is not a region")
        }
        let address = endpoint ?? "https://s3.\(region).amazonaws.com"
        guard let split = address.firstRange(ofText: "://") else {
            throw .invalid("\(address) is not an endpoint: https://host or https://host:port")
        }
        let scheme = String(address[..<split.lowerBound])
        var host = String(address[split.upperBound...])
        while host.hasSuffix("/") { host.removeLast() }
        let isPlain = host.utf8.allSatisfy { $0 > 32 && $0 < 127 && !"/?#@\\".utf8.contains($0) }
        guard scheme == "http" || scheme == "https", !host.isEmpty, isPlain else {
            throw .invalid("\(address) is not an endpoint: https://host or https://host:port")
        }
        let defaultPort = scheme == "https" ? ":443" : ":80"
        if host.hasSuffix(defaultPort) { host.removeLast(defaultPort.count) }
        self.bucket = bucket
        self.prefix = prefix
        self.scheme = scheme
        self.host = host.lowercased()
        self.style = style ?? (endpoint == nil ? .virtualHost : .path)
        self.region = region
    }

    private static func isBucketCharacter(_ byte: UInt8) -> Bool {
        (97...122).contains(byte) || (48...57).contains(byte) || byte == 45 || byte == 46
    }

    /// `s3://bucket/prefix`, for people.
    public var text: String { "s3://\(bucket)" + (prefix.isEmpty ? "" : "/\(prefix)") }

    /// The value of the header `Host`.
    var authority: String { style == .path ? host : "\(bucket).\(host)" }

    /// Returns the path of a key in requests, percent-encoded as signatures need it.
    ///
    /// - Parameter key: the key below the prefix; nil for the bucket
    func path(of key: String?) -> String {
        let start = style == .path ? "/\(bucket)" : ""
        guard let key else { return start.isEmpty ? "/" : start }
        return start + "/" + RequestSigner.encoded(prefix.isEmpty ? key : "\(prefix)/\(key)", keepsSlashes: true)
    }
}

extension String {
    /// Returns the first occurrence of a text.
    func firstRange(ofText text: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
