import Contracts
public import Basics
public import JSONValue
import Logging
public import SystemPackage

extension PhotoLibrary {
    /// Uploads a file to the catalog in chunks, for use in a change request.
    ///
    /// A chunk is sent again if the connection is lost. If the catalog has restarted, the whole upload begins again.
    /// The catalog verifies the SHA-256 of the file.
    ///
    /// - Parameters:
    ///   - deadline: the time limit of each request; a chunk is 1 MiB, and the file may take longer
    ///   - verifies: true to compare a file that the library already has for these bytes with them, and to replace it
    ///     if it is damaged
    /// - Returns: the upload's id, which expires after ten minutes unless it is used
    /// - Throws: `missing_resource` if the file cannot be read, or the catalog's error
    public func upload(
        file path: String,
        deadline: Duration = .seconds(600),
        verifies: Bool = false
    ) async throws(RPCError) -> String {
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(path, .readOnly)
        } catch {
            throw Self.readError(path, error)
        }
        defer { try? file.close() }
        return try await upload(file, named: path, deadline: deadline, verifies: verifies)
    }

    /// Uploads an open file to the catalog in chunks, as ``upload(file:deadline:verifies:)``.
    ///
    /// - Parameter path: the name of the file in errors
    public func upload(
        _ file: FileDescriptor,
        named path: String = "the file",
        deadline: Duration = .seconds(600),
        verifies: Bool = false
    ) async throws(RPCError) -> String {
        try await upload(deadline, verifies) { offset, length throws(RPCError) in
            var chunk = Bytes(repeating: 0, count: length)
            var filled = 0
            do {
                while filled < length {
                    let count = try chunk.withUnsafeMutableBytes { buffer in
                        try file.read(
                            fromAbsoluteOffset: offset + Int64(filled),
                            into: .init(rebasing: buffer[filled...])
                        )
                    }
                    if count == 0 { break }
                    filled += count
                }
            } catch {
                throw Self.readError(path, error)
            }
            chunk.removeLast(length - filled)
            return chunk
        }
    }

    /// Uploads bytes to the catalog in chunks. Up to 8 MiB can more simply be attached to the change request.
    public func upload(_ bytes: Bytes, deadline: Duration = .seconds(600)) async throws(RPCError) -> String {
        try await upload(deadline, false) { offset, length throws(RPCError) in
            Bytes(bytes.dropFirst(Int(clamping: offset)).prefix(length))
        }
    }

    /// Discards uploads that no transaction has used. Otherwise they count against the limits of this identity until
    /// they expire, which is also the case if the catalog does not answer.
    public func cancelUploads(_ uploads: [String]) async {
        guard !uploads.isEmpty else { return }
        // The task may be cancelled, and the requests must be sent nevertheless.
        await runToEnd { [catalog] in
            for upload in uploads {
                do throws(RPCError) {
                    _ = try await catalog.ask(CancelUpload(upload: upload), deadline: .seconds(1))
                } catch {
                    // Only this upload is unknown to the catalog, for example because it was restarted.
                    guard error.errorCode == .handleExpired else { return }
                }
            }
        }
    }

    private static func readError(_ path: String, _ error: any Error) -> RPCError {
        ErrorCode.missingResource.error("\(path) cannot be read: \(error)", ["path": .string(path)])
    }

    /// Maximum number of attempts if the catalog loses the upload because it restarts.
    public static let uploadAttempts = 5

    private func upload(
        _ deadline: Duration,
        _ verifies: Bool,
        read: (_ offset: Int64, _ length: Int) throws(RPCError) -> Bytes
    ) async throws(RPCError) -> String {
        for attempt in 1... {
            do throws(RPCError) {
                return try await uploadOnce(deadline, verifies, read: read)
            } catch  where error.errorCode == .handleExpired && attempt < Self.uploadAttempts {
                logger.info("upload expired at the catalog, starting again", metadata: ["attempt": "\(attempt)"])
            }
        }
        throw ErrorCode.handleExpired.error("the upload expired at the catalog repeatedly; see the catalog's log")
    }

    private func uploadOnce(
        _ deadline: Duration,
        _ verifies: Bool,
        read: (_ offset: Int64, _ length: Int) throws(RPCError) -> Bytes
    ) async throws(RPCError) -> String {
        let upload = try await withRetries(deadline) { time throws(RPCError) in
            try await self.catalog.ask(BeginUpload(), deadline: time).result
        }
        do throws(RPCError) {
            return try await send(upload, deadline, verifies, read: read)
        } catch {
            if error.errorCode != .handleExpired { await cancelUploads([upload.upload]) }
            throw error
        }
    }

    private func send(
        _ upload: BeginUpload.Result,
        _ deadline: Duration,
        _ verifies: Bool,
        read: (_ offset: Int64, _ length: Int) throws(RPCError) -> Bytes
    ) async throws(RPCError) -> String {
        var hash = SHA256()
        var offset: Int64 = 0
        while true {
            let chunk = try read(offset, upload.chunkBytes)
            if chunk.isEmpty { break }
            hash.update(data: chunk)
            let append = AppendUpload(upload: upload.upload, offset: offset)
            _ = try await withRetries(deadline) { time throws(RPCError) in
                try await self.catalog.ask(append, attachments: [chunk], deadline: time)
            }
            offset += Int64(chunk.count)
        }
        let digest = hash.finalize().hexadecimal
        let finish = FinishUpload(upload: upload.upload, digest: digest, verifies: verifies)
        return try await withRetries(deadline) { time throws(RPCError) in
            try await self.catalog.ask(finish, deadline: time).result.upload
        }
    }
}
