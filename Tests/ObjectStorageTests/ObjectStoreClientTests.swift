import Basics
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ObjectStorage

/// Tests of the client with a real S3 server.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ObjectStoreClientTests {
    private let folder: TemporaryFolder
    private static let credentials = ObjectStoreCredentials(
        accessKey: "safelight-key",
        secret: S3Server.secret
    )

    init() throws { folder = try TemporaryFolder("object-store") }

    private func client(
        _ endpoint: String,
        credentials: ObjectStoreCredentials = credentials,
        _ change: (inout ObjectStoreSettings) -> Void = { _ in }
    ) throws -> ObjectStoreClient {
        var settings = ObjectStoreSettings()
        settings.partBytes = 5 << 20
        change(&settings)
        return ObjectStoreClient(
            try ObjectStoreLocation(url: "s3://photos/p", endpoint: endpoint),
            credentials,
            settings
        )
    }

    /// Returns the number of requests to a server whose lines in its log contain a text.
    private func requests(_ server: S3Server, _ text: String) -> Int { server.requests.count { $0.contains(text) } }

    private static func bytes(_ count: Int) -> [UInt8] {
        var random = SeededRandom(seed: UInt64(count))
        return (0..<count / 8).flatMap { _ in
            withUnsafeBytes(of: UInt64.random(in: .min ... .max, using: &random)) { Array($0) }
        }
    }

    private func downloaded(_ client: ObjectStoreClient, _ key: String, _ size: Int) async throws -> [UInt8] {
        let found = Mutex<[UInt8]>([])
        try await client.download(key, size: Int64(size)) { piece in found.withLock { $0 += piece } }
        return found.withLock { $0 }
    }

    @Test func `objects of one and of several parts are transferred, and truncated downloads continue`() async throws {
        let server = try S3Server()
        defer { server.killHard() }
        let client = try client(server.endpoint)
        for (key, size) in [("small", 100_000), ("none", 0), ("large", 12 << 20)] {
            let bytes = Self.bytes(size)
            let digest = SHA256.hash(data: bytes).hexadecimal
            let file = try FileHandle(forReadingFrom: URL(filePath: try folder.write(bytes, to: key)))
            let sent = Mutex<[Int64]>([])
            let info = try await client.upload(
                key,
                from: file.fileDescriptor,
                size: Int64(size),
                digest: digest,
                sent: { count in sent.withLock { $0.append(count) } }
            )
            #expect(info.size == Int64(size))
            #expect(sent.withLock { $0 == $0.sorted() && ($0.last ?? 0) <= Int64(size) })
            #expect(try await downloaded(client, key, size) == bytes)
            // A second upload finds the object, and replaces one with other bytes.
            let puts = requests(server, "\"PUT\"")
            try await client.upload(key, from: file.fileDescriptor, size: Int64(size), digest: digest)
            #expect(requests(server, "\"PUT\"") - puts <= 1)
            let parts = requests(server, "\"PUT\"")
            try await client.upload(
                key,
                from: file.fileDescriptor,
                size: Int64(size),
                digest: digest,
                replaces: true,
                sent: { count in sent.withLock { $0.append(count) } }
            )
            #expect(requests(server, "\"PUT\"") - parts == max(1, size / (5 << 20) + 1))
            #expect(sent.withLock { $0.last ?? 0 } == Int64(size), "all bytes are sent once more")
            try server.setFaults(#"{"truncate": true}"#)
            if size > 0 {
                let task = Task { try await downloaded(client, key, size) }
                while requests(server, "\"range\": \"bytes=") == 0, !Task.isCancelled { await Task.yield() }
                try server.setFaults("{}")
                #expect(try await task.value == bytes)
            }
            try server.setFaults("{}")
            // A local file with other bytes is not uploaded.
            let error = await #expect(throws: ObjectStoreError.self) {
                try await client.upload(
                    key + "-other",
                    from: file.fileDescriptor,
                    size: Int64(size),
                    digest: SHA256.hash(data: [1]).hexadecimal
                )
            }
            #expect(error?.problem == .fileDamaged)
            #expect(try await client.head(key + "-other") == nil)
        }
        // A store that does not support conditions gets requests without them.
        try server.setFaults(#"{"unconditional": true}"#)
        let bytes = Self.bytes(2000)
        let file = try FileHandle(forReadingFrom: URL(filePath: try folder.write(bytes, to: "plain")))
        let digest = SHA256.hash(data: bytes).hexadecimal
        try await client.upload("plain", from: file.fileDescriptor, size: 2000, digest: digest)
        #expect(try await downloaded(client, "plain", 2000) == bytes)
        try server.setFaults("{}")
        #expect(try await client.read("small", 10..<20) == Array(Self.bytes(100_000)[10..<20]))
        try await client.delete("small")
        try await client.delete("small")
        #expect(try await client.head("small") == nil)
    }

    @Test func `a store without checksums gets uploads in parts without them`() async throws {
        let server = try S3Server()
        defer { server.killHard() }
        let client = try client(server.endpoint)
        let bytes = Self.bytes(6 << 20)
        let digest = SHA256.hash(data: bytes).hexadecimal
        let file = try FileHandle(forReadingFrom: URL(filePath: try folder.write(bytes, to: "large")))
        func upload(_ key: String) async throws -> ObjectInfo {
            try await client.upload(key, from: file.fileDescriptor, size: 6 << 20, digest: digest)
        }
        try server.setFaults(#"{"plain": true}"#)
        #expect(try await upload("plain").checksum == nil)
        // Without checksums, the bytes are read back. The second upload starts without them.
        #expect(requests(server, #""GET", "path": "/photos/p/plain""#) == 1)
        #expect(requests(server, #""POST", "path": "/photos/p/plain?uploadId"#) == 2)
        #expect(try await upload("again").size == 6 << 20)
        #expect(requests(server, #""POST", "path": "/photos/p/again?uploadId"#) == 1)
        #expect(try await downloaded(client, "plain", 6 << 20) == bytes)
    }

    @Test
    func `a store that responds to a range with the whole object is an error, and no bytes are used`() async throws {
        let server = try S3Server()
        defer { server.killHard() }
        let client = try client(server.endpoint)
        let bytes = Self.bytes(100_000)
        let digest = SHA256.hash(data: bytes).hexadecimal
        let file = try FileHandle(forReadingFrom: URL(filePath: try folder.write(bytes, to: "whole")))
        try await client.upload("whole", from: file.fileDescriptor, size: 100_000, digest: digest)
        try server.setFaults(#"{"truncate": true, "rangeless": true}"#)
        let error = await #expect(throws: ObjectStoreError.self) { try await downloaded(client, "whole", 100_000) }
        #expect(error?.problem == .unexpectedReply)
    }

    @Test(arguments: [(65, 64), (64_000, 64), (64_001, 65), (5_000_000, 5000)])
    func `no upload has more than a thousand parts`(size: Int64, part: Int64) {
        #expect(ObjectStoreClient.partBytes(of: size, atLeast: 64) == part)
    }

    @Test
    func `requests are signed by the clock of the store if it differs, and wrong keys are reported as accessDenied`()
        async throws
    {
        let server = try S3Server()
        defer { server.killHard() }
        let client = try client(server.endpoint)
        try server.setFaults(#"{"skew": 7200}"#)
        try await client.checkBucket()
        #expect((7100...7300).contains(client.clockSkewSeconds))
        try server.setFaults("{}")
        try await client.checkBucket()
        #expect((-100...100).contains(client.clockSkewSeconds))
        // A response to HEAD does not name the time as the reason.
        try server.setFaults(#"{"skew": -7200}"#)
        #expect(try await client.head("none") == nil)
        #expect((-7300 ... -7100).contains(client.clockSkewSeconds))
        try server.setFaults("{}")
        #expect(try await client.head("none") == nil)
        #expect((-100...100).contains(client.clockSkewSeconds))
        let wrong = ObjectStoreCredentials(accessKey: "safelight-key", secret: "wrong")
        let error = await #expect(throws: ObjectStoreError.self) {
            try await self.client(server.endpoint, credentials: wrong).checkBucket()
        }
        #expect(error?.problem == .accessDenied && error?.message.contains("wrong") == false)
        let head = await #expect(throws: ObjectStoreError.self) {
            try await self.client(server.endpoint, credentials: wrong).head("none")
        }
        #expect(head?.problem == .accessDenied)
        server.killHard()
        let unreachable = await #expect(throws: ObjectStoreError.self) { try await client.checkBucket() }
        #expect(unreachable?.problem == .unreachable)
    }

    @Test func `credentials renewed in their file are used once the store refuses the old ones`() async throws {
        let server = try S3Server()
        defer { server.killHard() }
        func save(secret: String) throws -> String {
            let text = "[default]\naws_access_key_id = safelight-key\naws_secret_access_key = \(secret)\n"
            let path = try folder.write(Array(text.utf8), to: "credentials")
            #expect(chmod(path, 0o600) == 0)
            return path
        }
        let path = try save(secret: "old")
        let clients = try (1...2).map { _ in
            ObjectStoreClient(
                try ObjectStoreLocation(url: "s3://photos/p", endpoint: server.endpoint),
                try ObjectStoreCredentials(file: path),
                credentialsFile: path
            )
        }
        let refused = await #expect(throws: ObjectStoreError.self) { try await clients[0].checkBucket() }
        #expect(refused?.problem == .accessDenied)
        _ = try save(secret: S3Server.secret)
        let bytes = Self.bytes(2000)
        let file = try FileHandle(forReadingFrom: URL(filePath: try folder.write(bytes, to: "plain")))
        let digest = SHA256.hash(data: bytes).hexadecimal
        try await clients[0].upload("plain", from: file.fileDescriptor, size: 2000, digest: digest)
        #expect(try await downloaded(clients[1], "plain", 2000) == bytes)
        // Amazon reports expired temporary credentials with status 400, and names the reason only in the body.
        try server.setFaults(#"{"status": 400, "code": "ExpiredToken"}"#)
        let ended = await #expect(throws: ObjectStoreError.self) { try await clients[0].checkBucket() }
        #expect(ended?.problem == .accessDenied)
        let head = await #expect(throws: ObjectStoreError.self) { try await clients[0].head("plain") }
        #expect(head?.problem == .accessDenied)
    }

    @Test func `a certificate is trusted only if its authority is configured`() async throws {
        let openssl = try Needed.program("openssl")
        let (certificate, key) = (folder.file("cert.pem"), folder.file("key.pem"))
        let run = try RunningProgram.run(
            openssl,
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
            ]
        )
        try #require(run.status == 0, "\(run.errors)")
        let server = try S3Server(variables: ["S3_CERTIFICATE": certificate, "S3_KEY": key])
        defer { server.killHard() }
        let endpoint = "https://" + (try server.address)
        let error = await #expect(throws: ObjectStoreError.self) {
            try await client(endpoint).checkBucket()
        }
        #expect(error?.problem == .untrustedCertificate)
        try await client(endpoint) { $0.certificateFile = certificate }.checkBucket()
    }
}
