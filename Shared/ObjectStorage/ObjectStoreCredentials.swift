import Glibc

/// The keys of an object store. No description contains the secret.
public struct ObjectStoreCredentials: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    public let accessKey: String
    let secret: String
    let sessionToken: String?

    public init(accessKey: String, secret: String, sessionToken: String? = nil) {
        self.accessKey = accessKey
        self.secret = secret
        self.sessionToken = sessionToken
    }

    /// The access key only, which is no secret.
    public var description: String { "credentials of \(accessKey)" }
    public var debugDescription: String { description }

    /// Reads a file in the form of `~/.aws/credentials`: `aws_access_key_id = …` and `aws_secret_access_key = …` below
    /// `[default]` or another profile. Only its owner may have read permission.
    ///
    /// - Throws: ``ObjectStoreError`` with the problem ``ObjectStoreProblem/invalidSettings``
    public init(file path: String, profile: String = "default") throws(ObjectStoreError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw .invalid("the credentials file \(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= 64 << 10 else {
            throw .invalid("the credentials file \(path) is not a regular file of at most 64 KiB")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw .invalid("others may read the credentials file \(path); run chmod 600 \(path)")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count >= 0 else {
            throw .invalid("the credentials file \(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        self = try Self.parse(String(decoding: bytes.prefix(count), as: UTF8.self), profile: profile, path: path)
    }

    static func parse(_ text: String, profile: String, path: String) throws(ObjectStoreError) -> Self {
        var section = "default"
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let line = line.trimmed
            if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") { continue }
            if line.hasPrefix("["), line.hasSuffix("]") {
                section = line.dropFirst().dropLast().trimmed
            } else if section == profile, let equals = line.firstIndex(of: "=") {
                values[line[..<equals].trimmed.lowercased()] = line[line.index(after: equals)...].trimmed
            }
        }
        guard let key = values["aws_access_key_id"], let secret = values["aws_secret_access_key"], !key.isEmpty,
            !secret.isEmpty
        else {
            throw .invalid("\(path) has no aws_access_key_id and aws_secret_access_key below [\(profile)]")
        }
        return Self(accessKey: key, secret: secret, sessionToken: values["aws_session_token"])
    }

    /// Creates credentials from the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`;
    /// nil if they are not set.
    public init?(environment: (String) -> String?) {
        guard let key = environment("AWS_ACCESS_KEY_ID"), let secret = environment("AWS_SECRET_ACCESS_KEY"),
            !key.isEmpty, !secret.isEmpty
        else { return nil }
        self.init(accessKey: key, secret: secret, sessionToken: environment("AWS_SESSION_TOKEN"))
    }
}

extension StringProtocol {
    var trimmed: String {
        var text = self[...]
        while text.first?.isWhitespace == true { text = text.dropFirst() }
        while text.last?.isWhitespace == true { text = text.dropLast() }
        return String(text)
    }
}
