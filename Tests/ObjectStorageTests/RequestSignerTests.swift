import Basics
import Foundation
import TestSupport
import Testing

@testable import ObjectStorage

/// Tests of signatures, locations and credentials. The reference for signatures is botocore, Amazon's own code.
@Suite(.timeLimit(.minutes(2)))
struct RequestSignerTests {
    private static let script = """
        import json, sys
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        class Signed(S3SigV4Auth):
            def _modify_request_before_signing(self, request): pass
        for line in sys.stdin:
            case = json.loads(line)
            request = AWSRequest(case["method"], case["url"], case["headers"], case["body"].encode())
            request.context["timestamp"] = case["headers"]["x-amz-date"]
            auth = Signed(Credentials(case["key"], case["secret"]), "s3", case["region"])
            canonical = auth.canonical_request(request)
            print(auth.signature(auth.string_to_sign(request, canonical), request))
        """

    @Test func `signatures of all kinds of requests equal those of botocore`() throws {
        let python = try Needed.python("botocore")
        var random = SeededRandom(named: "signatures")
        var lines = ""
        var own: [String] = []
        let letters = Array("abcXYZ019-._~ +/&=?%:@!$'()*,;äß漢\u{1F4F7}")
        func text(_ count: Int) -> String {
            String((0..<count).map { _ in letters.randomElement(using: &random) ?? "a" })
        }
        for index in 0..<400 {
            let method = ["GET", "PUT", "HEAD", "DELETE", "POST"][index % 5]
            let region = ["us-east-1", "eu-central-1"][index % 2]
            let credentials = ObjectStoreCredentials(
                accessKey: "KEY\(index)",
                secret: text(Int.random(in: 1...60, using: &random))
            )
            let key = "a" + text(Int.random(in: 1...40, using: &random)).replacing("//", with: "/")
            let path = "/bucket/" + RequestSigner.encoded(key, keepsSlashes: true)
            var query: [(String, String)] = []
            if index % 3 == 0 { query = [("uploadId", text(9)), ("partNumber", "\(index)"), ("a b", "")] }
            var headers = [("host", "store.example:9000")]
            if index % 4 == 0 { headers.append(("range", "bytes=\(index)-")) }
            if index % 7 == 0 { headers.append(("if-none-match", "*")) }
            let body = text(index % 50)
            let signed = RequestSigner(credentials, region: region).signed(
                method: method,
                path: path,
                query: query,
                headers: headers,
                payloadHash: SHA256.hash(data: Array(body.utf8)).hexadecimal,
                seconds: Int.random(in: 0...4_000_000_000, using: &random)
            )
            let authorization = signed.last { $0.0 == "authorization" }?.1 ?? ""
            own.append(authorization.components(separatedBy: "Signature=").last ?? "")
            let queryText = RequestSigner.queryText(query)
            var sent: [String: String] = [:]
            for (name, value) in signed where name != "authorization" { sent[name] = value }
            let object: [String: Any] = [
                "method": method,
                "url": "http://store.example:9000\(path)" + (queryText.isEmpty ? "" : "?\(queryText)"),
                "headers": sent,
                "body": body, "key": credentials.accessKey, "secret": credentials.secret, "region": region,
            ]
            lines += String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self) + "\n"
        }
        let run = try RunningProgram.run(python, ["-B", "-c", Self.script], input: Data(lines.utf8))
        let theirs = run.output.split(separator: "\n").map(String.init)
        #expect(run.status == 0, "\(run.errors.suffix(2000))")
        #expect(theirs.count == own.count)
        let different = zip(own, theirs).enumerated().filter { $1.0 != $1.1 }.map(\.offset)
        #expect(different.isEmpty, "cases \(different.prefix(5))")
    }

    @Test func `locations are read in full, or refused with a reason`() throws {
        let own = try ObjectStoreLocation(url: "s3://photos/a/b/", endpoint: "http://127.0.0.1:9000/")
        #expect(own.bucket == "photos" && own.prefix == "a/b" && own.style == .path)
        #expect(own.path(of: "k y") == "/photos/a/b/k%20y" && own.authority == "127.0.0.1:9000")
        let amazon = try ObjectStoreLocation(url: "s3://photos", region: "eu-central-1")
        #expect(amazon.style == .virtualHost && amazon.authority == "photos.s3.eu-central-1.amazonaws.com")
        #expect(amazon.path(of: "k") == "/k" && amazon.path(of: nil) == "/")
        for url in ["photos", "s3://", "s3://a", "s3://UPPER", "s3://ab/../c", "http://photos"] {
            #expect(throws: ObjectStoreError.self) { try ObjectStoreLocation(url: url) }
        }
        for endpoint in ["host", "ftp://host", "https://", "https://host/path", "https://a b", "https://u@host"] {
            #expect(throws: ObjectStoreError.self) { try ObjectStoreLocation(url: "s3://photos", endpoint: endpoint) }
        }
    }

    @Test func `credentials come from a file that only its owner may read, and no description has the secret`() throws {
        let folder = try TemporaryFolder("credentials")
        let text =
            "# mine\n[other]\naws_access_key_id = X\n[default]\naws_access_key_id = KEY\naws_secret_access_key=s/3+=\n"
        let path = try folder.write(Array(text.utf8), to: "credentials")
        #expect(chmod(path, 0o644) == 0)
        #expect(throws: ObjectStoreError.self) { try ObjectStoreCredentials(file: path) }
        #expect(chmod(path, 0o600) == 0)
        let credentials = try ObjectStoreCredentials(file: path)
        #expect(credentials == ObjectStoreCredentials(accessKey: "KEY", secret: "s/3+="))
        #expect(!"\(credentials) \(String(reflecting: credentials))".contains("s/3+="))
        #expect(throws: ObjectStoreError.self) { try ObjectStoreCredentials(file: path, profile: "other") }
        #expect(ObjectStoreCredentials(environment: { $0 == "AWS_ACCESS_KEY_ID" ? "a" : nil }) == nil)
    }

    @Test func `checksums are in base64`() {
        for text in ["", "a", "ab", "abc", "abcd", "\u{FF}\u{FE}"] {
            #expect(Base64.text(Array(text.utf8)) == Data(text.utf8).base64EncodedString())
        }
    }
}
