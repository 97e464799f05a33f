import Basics
import Glibc

/// Signatures of requests: AWS Signature Version 4, in the header `Authorization`, with a signed SHA-256 of the body.
///
/// Source: "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)", Amazon S3 API
/// Reference.
public struct RequestSigner: Sendable {
    let credentials: ObjectStoreCredentials
    let region: String

    public init(_ credentials: ObjectStoreCredentials, region: String) {
        self.credentials = credentials
        self.region = region
    }

    /// The SHA-256 of an empty body, in hexadecimal.
    static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    /// Returns the headers with `x-amz-date`, `x-amz-content-sha256`, `x-amz-security-token` if there is one, and
    /// `Authorization`.
    ///
    /// - Parameters:
    ///   - path: percent-encoded, as it is sent
    ///   - query: names and values, not encoded
    ///   - headers: headers to be signed, with `host`; names in lower case
    ///   - payloadHash: the SHA-256 of the body, in hexadecimal
    ///   - seconds: the time of the signature since 1970
    public func signed(
        method: String,
        path: String,
        query: [(String, String)],
        headers: [(String, String)],
        payloadHash: String,
        seconds: Int
    ) -> [(String, String)] {
        let (day, time) = Self.date(seconds)
        let stamp = "\(day)T\(time)Z"
        var headers = headers + [("x-amz-content-sha256", payloadHash), ("x-amz-date", stamp)]
        if let token = credentials.sessionToken { headers.append(("x-amz-security-token", token)) }
        headers.sort { $0.0 < $1.0 }
        let names = headers.map(\.0).joined(separator: ";")
        let canonical = [
            method, path, Self.queryText(query), headers.map { "\($0.0):\($0.1.trimmed)\n" }.joined(), names,
            payloadHash,
        ].joined(separator: "\n")
        let scope = "\(day)/\(region)/s3/aws4_request"
        let text = "AWS4-HMAC-SHA256\n\(stamp)\n\(scope)\n" + SHA256.hash(data: Array(canonical.utf8)).hexadecimal
        var key = Array("AWS4\(credentials.secret)".utf8)
        for part in [day, region, "s3", "aws4_request"] { key = HMACSHA256.code(of: Array(part.utf8), key: key) }
        let signature = HMACSHA256.code(of: Array(text.utf8), key: key).hexadecimal
        let authorization =
            "AWS4-HMAC-SHA256 Credential=\(credentials.accessKey)/\(scope), SignedHeaders=\(names), "
            + "Signature=\(signature)"
        return headers + [("authorization", authorization)]
    }

    /// Returns the query of the URL: encoded and sorted.
    static func queryText(_ query: [(String, String)]) -> String {
        query.map { (encoded($0.0, keepsSlashes: false), encoded($0.1, keepsSlashes: false)) }
            .sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// Percent-encodes everything but unreserved characters (RFC 3986).
    static func encoded(_ text: String, keepsSlashes: Bool) -> String {
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 48...57, 65...90, 97...122, 45, 46, 95, 126: encoded.append(byte)
            case 47 where keepsSlashes: encoded.append(byte)
            default:
                let digits = Array("0123456789ABCDEF".utf8)
                encoded += [37, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// Returns the day and the time of day in UTC, as `20260131` and `235959`.
    private static func date(_ seconds: Int) -> (day: String, time: String) {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func text(_ number: Int32, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
        let day = text(parts.tm_year + 1900, 4) + text(parts.tm_mon + 1, 2) + text(parts.tm_mday, 2)
        return (day, text(parts.tm_hour, 2) + text(parts.tm_min, 2) + text(parts.tm_sec, 2))
    }
}
