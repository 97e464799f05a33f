import Basics
import Glibc
import Synchronization

/// Multipart uploads, for large files.
extension ObjectStoreClient {
    /// Aborts unfinished multipart uploads of an object, which a killed program leaves behind. The store would keep
    /// the parts.
    ///
    /// - Throws: ``ObjectStoreError``, also if the store does not list such uploads
    public func abortUploads(of key: String) async throws {
        let name = location.prefix.isEmpty ? key : "\(location.prefix)/\(key)"
        let response = try await send(Request(method: "GET", query: [("prefix", name), ("uploads", "")]))
        // The list may include longer keys that begin with this one.
        for entry in String(decoding: response.body, as: UTF8.self).split(separator: "<Upload>").dropFirst() {
            guard XMLText.element("Key", of: String(entry)) == name,
                let upload = XMLText.element("UploadId", of: String(entry))
            else { continue }
            _ = try await send(Request(method: "DELETE", key: key, query: [("uploadId", upload)]))
        }
    }

    /// Uploads a file as a multipart upload and confirms it. A failed upload is aborted, so that the store
    /// keeps no parts of it.
    func uploadParts(
        _ key: String,
        from descriptor: Int32,
        size: Int64,
        digest: String,
        sent: (@Sendable (Int64) -> Void)?
    ) async throws -> ObjectInfo {
        // No other upload is aborted: only this library uploads below its prefix, and each object once at a time.
        try? await abortUploads(of: key)
        let start = Request(
            method: "POST",
            key: key,
            query: [("uploads", "")],
            headers: [("x-amz-checksum-algorithm", "SHA256")]
        )
        let response = try await send(start)
        guard let upload = XMLText.element("UploadId", of: String(decoding: response.body, as: UTF8.self)) else {
            throw ObjectStoreError(.unexpectedReply, "the object store did not start a multipart upload")
        }
        do {
            return try await uploadParts(key, upload, from: descriptor, size: size, digest: digest, sent: sent)
        } catch {
            // In a task of its own, because the current one may be cancelled.
            let abort = Request(method: "DELETE", key: key, query: [("uploadId", upload)])
            _ = await Task { try? await self.attempt(abort) }.value
            throw error
        }
    }

    private func uploadParts(
        _ key: String,
        _ upload: String,
        from descriptor: Int32,
        size: Int64,
        digest: String,
        sent: (@Sendable (Int64) -> Void)?
    ) async throws -> ObjectInfo {
        let partBytes = Self.partBytes(of: size, atLeast: settings.partBytes)
        var whole = SHA256()
        var hashes: [UInt8] = []
        var uploaded: [UploadedPart] = []
        var number = 0
        var start: Int64 = 0
        while start < size {
            let range = start..<min(start + partBytes, size)
            defer { start = range.upperBound }
            number += 1
            let hashed = whole
            let (hash, next) = try await onThread { try Self.hash(descriptor, range, adding: hashed) }
            whole = next
            let before = start
            let report: (@Sendable (Int64) -> Void)? = sent.map { sent in { @Sendable count in sent(before + count) } }
            let request = Request(
                method: "PUT",
                key: key,
                query: [("partNumber", String(number)), ("uploadId", upload)],
                headers: [("x-amz-checksum-sha256", Base64.text(hash))],
                body: .file(descriptor, range, hash: hash.hexadecimal),
                sent: report
            )
            let response = try await send(request)
            guard let tag = response.headers["etag"] else {
                throw ObjectStoreError(.unexpectedReply, "the object store returned no ETag for a part")
            }
            hashes += hash
            uploaded.append(UploadedPart(number: number, tag: tag, checksum: Base64.text(hash)))
        }
        guard whole.finalize().hexadecimal == digest else {
            throw ObjectStoreError(.fileDamaged, "the local file has other bytes than it had at import")
        }
        let response = try await complete(key, upload, uploaded)
        // A completion that fails has the status 200 too.
        if let code = XMLText.element("Code", of: String(decoding: response.body, as: UTF8.self)) {
            throw ObjectStoreError(.storeBusy, "the object store did not combine the parts (\(code))")
        }
        let parts = Base64.text(SHA256.hash(data: hashes).bytes) + "-\(number)"
        guard let info = try await head(key), info.size == size,
            try await confirm(key, info, digest: digest, parts: parts)
        else {
            throw ObjectStoreError(.objectDamaged, "the object store has other bytes than were uploaded")
        }
        return info
    }

    private struct UploadedPart {
        let number: Int
        let tag: String
        /// The SHA-256 in base64.
        let checksum: String

        func text(withChecksum: Bool) -> String {
            "<Part><PartNumber>\(number)</PartNumber><ETag>\(tag)</ETag>"
                + (withChecksum ? "<ChecksumSHA256>\(checksum)</ChecksumSHA256></Part>" : "</Part>")
        }
    }

    /// Completes an upload. A store without checksums, such as OpenStack Swift, refuses a list with them; it is then
    /// sent without.
    private func complete(_ key: String, _ upload: String, _ parts: [UploadedPart]) async throws -> Response {
        func complete(withChecksums: Bool) async throws -> Response {
            let body =
                "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                + parts.map { $0.text(withChecksum: withChecksums) }.joined() + "</CompleteMultipartUpload>"
            let query = [("uploadId", upload)]
            return try await send(Request(method: "POST", key: key, query: query, body: .bytes(Array(body.utf8))))
        }
        let hasChecksums = supportsChecksums.load(ordering: .relaxed)
        do {
            return try await complete(withChecksums: hasChecksums)
        } catch let error as ObjectStoreError where error.problem == .unexpectedReply && hasChecksums {
            let response = try await complete(withChecksums: false)
            supportsChecksums.store(false, ordering: .relaxed)
            return response
        }
    }

    /// Returns the size of the parts in which a file is uploaded.
    ///
    /// Amazon accepts 10,000 parts, OpenStack Swift 1,000 by default, and both at most 5 GiB per part.
    static func partBytes(of size: Int64, atLeast minimum: Int64) -> Int64 { max(minimum, (size + 999) / 1000) }

    /// Returns the SHA-256 of a range of a file, and another hash with its bytes added.
    private static func hash(
        _ descriptor: Int32,
        _ range: Range<Int64>,
        adding whole: SHA256
    ) throws -> (part: [UInt8], whole: SHA256) {
        var (hash, whole) = (SHA256(), whole)
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        var position = range.lowerBound
        while position < range.upperBound {
            let length = Int(min(Int64(bytes.count), range.upperBound - position))
            let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, length, off_t(position)) }
            guard count > 0 else {
                throw ObjectStoreError(.fileDamaged, "the file cannot be read, or is shorter than at import")
            }
            hash.update(data: bytes[..<count])
            whole.update(data: bytes[..<count])
            position += Int64(count)
        }
        return (hash.finalize().bytes, whole)
    }
}
