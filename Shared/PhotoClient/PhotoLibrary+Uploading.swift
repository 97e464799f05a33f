import Contracts
import Basics
import JSONValue
import Logging
public import Messaging
import SystemPackage

extension PhotoLibrary {
    /// Hands a file's bytes to the catalog, in steps, so that a change request may name them.
    ///
    /// A step is repeated where the connection breaks; where the catalog was started anew meanwhile, the upload begins
    /// again. The catalog checks the whole by its SHA-256.
    ///
    /// - Parameter verifies: where the library has the bytes, its file is compared with them, and replaced if damaged
    /// - Returns: the upload's name; it lives ten minutes unless it is used
    /// - Throws: `missing_resource` where the file cannot be read, or the catalog's refusal
    public func upload(
        file path: String,
        deadline: Duration = .seconds(600),
        verifies: Bool = false
    ) async throws(RPCError) -> String {
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(path, .readOnly)
        } catch {
            throw Self.cannotRead(path, error)
        }
        defer { try? file.close() }
        return try await upload(deadline, verifies) { offset, length throws(RPCError) in
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
                throw Self.cannotRead(path, error)
            }
            chunk.removeLast(length - filled)
            return chunk
        }
    }

    /// Hands bytes to the catalog, in steps; up to 8 MiB are sent more simply as an attachment of the change.
    public func upload(_ bytes: Bytes, deadline: Duration = .seconds(600)) async throws(RPCError) -> String {
        try await upload(deadline, false) { offset, length throws(RPCError) in
            Bytes(bytes.dropFirst(Int(clamping: offset)).prefix(length))
        }
    }

    private static func cannotRead(_ path: String, _ error: any Error) -> RPCError {
        Refusal.missingResource.error("\(path) cannot be read: \(error)", ["path": .string(path)])
    }

    /// How often an upload begins again after the catalog forgot it.
    private static let uploadAttempts = 5

    private func upload(
        _ deadline: Duration,
        _ verifies: Bool,
        read: (_ offset: Int64, _ length: Int) throws(RPCError) -> Bytes
    ) async throws(RPCError) -> String {
        let clock = ContinuousClock()
        let end = clock.now + deadline
        for attempt in 1... {
            do throws(RPCError) {
                return try await uploadOnce(until: end, verifies, read: read)
            } catch  where error.refusal == .handleExpired && attempt < Self.uploadAttempts {
                logger.info("the catalog forgot an upload, beginning again", metadata: ["attempt": "\(attempt)"])
            }
        }
        throw Refusal.handleExpired.error("the catalog forgot the upload again and again")
    }

    private func uploadOnce(
        until end: ContinuousClock.Instant,
        _ verifies: Bool,
        read: (_ offset: Int64, _ length: Int) throws(RPCError) -> Bytes
    ) async throws(RPCError) -> String {
        var remaining: Duration { end - ContinuousClock().now }
        let upload = try await retrying(remaining) { time throws(RPCError) in
            try await self.catalog.ask(BeginUpload(), deadline: time).result
        }
        var hash = SHA256()
        var offset: Int64 = 0
        while true {
            let chunk = try read(offset, upload.chunkBytes)
            if chunk.isEmpty { break }
            hash.update(data: chunk)
            let append = AppendUpload(upload: upload.upload, offset: offset)
            _ = try await retrying(remaining) { time throws(RPCError) in
                try await self.catalog.ask(append, attachments: [chunk], deadline: time)
            }
            offset += Int64(chunk.count)
        }
        let digest = hash.finalize().hexadecimal
        let finish = FinishUpload(upload: upload.upload, digest: digest, verifies: verifies)
        return try await retrying(remaining) { time throws(RPCError) in
            try await self.catalog.ask(finish, deadline: time).result.upload
        }
    }
}
