import Basics
import Glibc
import Synchronization

/// The properties of a stored object.
public struct ObjectInfo: Sendable, Equatable {
    /// The size in bytes.
    public let size: Int64
    /// The SHA-256 that the store reports, in base64; after an upload in parts that of the parts' checksums, with `-`
    /// and the number of parts; nil if it reports none.
    public let checksum: String?
    /// The ETag: the store's name for this version of the bytes.
    public let tag: String?

    /// Returns false if the store's checksum proves that the object does not have the bytes with a SHA-256.
    public func mayHave(digest: String) -> Bool {
        guard let checksum, !checksum.contains("-") else { return true }
        return checksum == Base64.text([UInt8](hexadecimal: digest) ?? [])
    }
}

extension ObjectStoreClient {
    /// Returns the properties of an object; nil if it does not exist.
    public func head(_ key: String) async throws -> ObjectInfo? {
        do {
            let headers = [("x-amz-checksum-mode", "ENABLED")]
            let response = try await send(Request(method: "HEAD", key: key, headers: headers))
            guard let size = response.headers["content-length"].flatMap({ Int64($0) }) else {
                throw ObjectStoreError(.unexpectedReply, "the object store does not report sizes")
            }
            return ObjectInfo(
                size: size,
                checksum: response.headers["x-amz-checksum-sha256"],
                tag: response.headers["etag"]
            )
        } catch let error as ObjectStoreError where error.problem == .noObject {
            // A response to HEAD has no body that would name the bucket as the missing resource.
            try await checkBucket()
            return nil
        } catch let error as ObjectStoreError where error.problem == .unexpectedReply {
            // A response without a body does not name expired temporary credentials as the reason either.
            try await checkBucket()
            throw error
        }
    }

    /// Checks that the bucket exists and can be read.
    ///
    /// - Throws: ``ObjectStoreError``
    public func checkBucket() async throws {
        _ = try await send(Request(method: "GET", query: [("list-type", "2"), ("max-keys", "1")]))
    }

    /// Checks that the store accepts an object: one byte, with a key that no file has.
    ///
    /// - Throws: ``ObjectStoreError``
    public func checkWriting() async throws {
        let body: [UInt8] = [0]
        let headers = Self.checksum(SHA256.hash(data: body).hexadecimal)
        _ = try await send(Request(method: "PUT", key: "availability", headers: headers, body: .bytes(body)))
        // Uploads do not need the permission to delete.
        try? await delete("availability")
    }

    /// Returns the headers that make the store verify the bytes of an upload against a SHA-256 in hexadecimal.
    private static func checksum(_ digest: String) -> [(String, String)] {
        [
            ("x-amz-sdk-checksum-algorithm", "SHA256"),
            ("x-amz-checksum-sha256", Base64.text([UInt8](hexadecimal: digest) ?? [])),
        ]
    }

    /// Deletes an object; succeeds if it does not exist. In a versioned bucket, earlier versions stay.
    public func delete(_ key: String) async throws {
        do {
            _ = try await send(Request(method: "DELETE", key: key))
        } catch let error as ObjectStoreError where error.problem == .noObject {}
    }

    /// Uploads a file and confirms its size and SHA-256 at the store.
    ///
    /// The bytes are hashed while they are sent. Afterwards the store's checksum is compared, or the object is read
    /// back if the store has none. An object that already exists with these bytes is not uploaded again.
    ///
    /// - Parameters:
    ///   - descriptor: the open file; its file offset is not used
    ///   - size: its size in bytes
    ///   - digest: its SHA-256, in hexadecimal
    ///   - replaces: true to send the bytes even if the store has them
    ///   - sent: receives the growing number of bytes that were sent
    /// - Returns: the properties of the object
    /// - Throws: ``ObjectStoreError``: ``ObjectStoreProblem/fileDamaged`` if the file has other bytes
    @discardableResult
    public func upload(
        _ key: String,
        from descriptor: Int32,
        size: Int64,
        digest: String,
        replaces: Bool = false,
        sent: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> ObjectInfo {
        if size > settings.partBytes {
            if !replaces, let info = try await head(key), info.size == size,
                try await confirm(key, info, digest: digest)
            {
                return info
            }
            return try await uploadParts(key, from: descriptor, size: size, digest: digest, sent: sent)
        }
        let isConditional = !replaces && supportsConditions.load(ordering: .relaxed)
        do {
            try await put(key, from: descriptor, size: size, digest: digest, replaces: !isConditional, sent: sent)
        } catch let error as ObjectStoreError where error.problem == .unexpectedReply && isConditional {
            // The key is the digest: replacing an object changes nothing.
            try await put(key, from: descriptor, size: size, digest: digest, replaces: true, sent: sent)
            supportsConditions.store(false, ordering: .relaxed)
        } catch let error as ObjectStoreError where error.problem == .objectExists {
            if let info = try await head(key), info.size == size, try await confirm(key, info, digest: digest) {
                return info
            }
            try await put(key, from: descriptor, size: size, digest: digest, replaces: true, sent: sent)
        }
        return try await confirmedInfo(key, size: size, digest: digest)
    }

    /// Returns the properties of an uploaded object after its bytes were confirmed.
    private func confirmedInfo(_ key: String, size: Int64, digest: String) async throws -> ObjectInfo {
        guard let info = try await head(key) else {
            throw ObjectStoreError(.objectDamaged, "an object that was uploaded does not exist")
        }
        guard info.size == size, try await confirm(key, info, digest: digest) else {
            throw ObjectStoreError(.objectDamaged, "the object store has other bytes than were uploaded")
        }
        return info
    }

    private func put(
        _ key: String,
        from descriptor: Int32,
        size: Int64,
        digest: String,
        replaces: Bool,
        sent: (@Sendable (Int64) -> Void)?
    ) async throws {
        var headers = Self.checksum(digest)
        if !replaces { headers.append(("if-none-match", "*")) }
        let request = Request(
            method: "PUT",
            key: key,
            headers: headers,
            body: .file(descriptor, 0..<size, hash: digest),
            sent: sent
        )
        try await withRetries { [request] in
            var request = request
            let hash = Mutex(SHA256())
            request.observe = { bytes in hash.withLock { $0.update(data: bytes) } }
            _ = try await self.attempt(request)
            guard hash.withLock({ $0.finalize().hexadecimal }) == digest else {
                throw ObjectStoreError(.fileDamaged, "the local file has other bytes than it had at import")
            }
        }
    }

    /// Returns true if an object has the bytes of a SHA-256, by the store's checksum or by reading the object.
    ///
    /// - Parameter parts: the checksum of an upload in parts
    public func confirm(
        _ key: String,
        _ info: ObjectInfo,
        digest: String,
        parts: String? = nil
    ) async throws -> Bool {
        // After an upload in parts, the checksum depends on the store: an unexpected one proves nothing.
        if info.size > settings.partBytes {
            if let parts, info.checksum == parts { return true }
        } else if let checksum = info.checksum, !checksum.contains("-") {
            return info.mayHave(digest: digest)
        }
        return try await hasBytes(key, size: info.size, digest: digest)
    }

    /// Downloads an object and compares its SHA-256.
    public func hasBytes(_ key: String, size: Int64, digest: String) async throws -> Bool {
        let hash = Mutex(SHA256())
        try await download(key, size: size) { bytes in hash.withLock { $0.update(data: bytes) } }
        return hash.withLock { $0.finalize().hexadecimal } == digest
    }

    /// Downloads an object. After a lost connection the transfer continues where it ended, with the same version.
    ///
    /// - Parameters:
    ///   - size: its size in bytes
    ///   - sink: receives the bytes in order, on a thread of the client; an error ends the transfer
    /// - Throws: ``ObjectStoreError``; errors of the sink
    public func download(
        _ key: String,
        size: Int64,
        sink: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void
    ) async throws {
        let received = Atomic64()
        let tag = Mutex<String?>(nil)
        var failures = 0
        var isRenewed = false
        while true {
            let start = received.value
            let used = credentials
            do {
                var request = Request(method: "GET", key: key)
                if start > 0 {
                    request.headers.append(("range", "bytes=\(start)-"))
                    if let tag = tag.withLock({ $0 }) { request.headers.append(("if-match", tag)) }
                }
                request.accept = { headers in
                    // A proxy may answer with the whole object.
                    guard start == 0 || headers["content-range"]?.hasPrefix("bytes \(start)-") == true else {
                        throw ObjectStoreError(.unexpectedReply, "the object store does not serve ranges")
                    }
                    // A weak tag matches nothing.
                    let newTag = headers["etag"]
                    tag.withLock { $0 = newTag?.hasPrefix("W/") == true ? nil : newTag }
                }
                request.sink = { bytes in
                    guard received.value + Int64(bytes.count) <= size else {
                        throw ObjectStoreError(.objectDamaged, "the object is larger than the bytes that were uploaded")
                    }
                    try sink(bytes)
                    received.add(Int64(bytes.count))
                }
                _ = try await attempt(request)
                guard received.value == size else {
                    throw ObjectStoreError(.objectDamaged, "the object is shorter than the bytes that were uploaded")
                }
                return
            } catch let error as ObjectStoreError {
                if received.value == size, size > 0, error.problem == .truncated { return }
                if !isRenewed, await renewCredentials(after: error, used) {
                    isRenewed = true
                    continue
                }
                // Only failures without progress between them are counted.
                failures = received.value > start ? 1 : failures + 1
                let isRetried = error.problem.isTransient || (error.problem == .clockSkew && failures == 1)
                guard isRetried, failures < settings.attempts, !Task.isCancelled else { throw error }
                await TaskDelay.retryDelay(Self.retryDelay(after: failures))
            }
        }
    }

    /// Returns the bytes of a range.
    ///
    /// - Parameter range: at most 8 MiB within the object
    public func read(_ key: String, _ range: Range<Int64>) async throws -> [UInt8] {
        guard !range.isEmpty else { return [] }
        let bytes = Mutex<[UInt8]>([])
        let headers = [("range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
        try await withRetries {
            bytes.withLock { $0 = [] }
            let sink = { @Sendable (piece: UnsafeRawBufferPointer) in bytes.withLock { $0 += piece } }
            _ = try await self.attempt(Request(method: "GET", key: key, headers: headers, sink: sink))
        }
        return bytes.withLock { $0 }
    }
}

/// A counter for several threads.
private final class Atomic64: Sendable {
    private let number = Atomic<Int64>(0)
    var value: Int64 { number.load(ordering: .sequentiallyConsistent) }
    func add(_ count: Int64) { number.add(count, ordering: .sequentiallyConsistent) }
}

/// Base64 (RFC 4648), the encoding of checksums.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func text(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = Array(bytes[start..<min(start + 3, bytes.count)])
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for index in 0..<4 {
                text.append(index <= group.count ? alphabet[bits >> (18 - 6 * index) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
