import Basics
import Synchronization

/// Computes the digest of a file's bytes in steps, so that other work can run between them.
public final class FileHash: Sendable {
    /// The number of bytes that one step reads: 8 MiB.
    public static let stepBytes: Int64 = 8 << 20

    private struct State {
        var hash = SHA256()
        var offset: Int64 = 0
    }

    private let file: ResourceFile
    private let state = Mutex(State())

    /// Makes a hash of the bytes that the file had when it was opened.
    public init(of file: ResourceFile) { self.file = file }

    /// Reads the next bytes; blocks.
    ///
    /// - Returns: the digest when everything has been read; nil before.
    /// - Throws: ``StorageError`` if reading fails.
    public func next() throws(StorageError) -> ResourceDigest? {
        try state.withLock { (state) throws(StorageError) in
            let end = min(state.offset + Self.stepBytes, file.size)
            while state.offset < end {
                let count = Int(min(end - state.offset, Int64(ResourceStore.stepBytes)))
                let bytes = try file.read(offset: state.offset, count: count)
                // The file was truncated meanwhile: the digest is that of the remaining bytes.
                if bytes.isEmpty { return ResourceDigest(state.hash.finalize()) }
                state.hash.update(data: bytes)
                state.offset += Int64(bytes.count)
            }
            return state.offset < file.size ? nil : ResourceDigest(state.hash.finalize())
        }
    }
}

/// Copies an open file into a store in steps, so that other work can run between them.
///
/// Releasing it without ``finish(verifies:)`` removes the copied bytes.
public final class ResourceCopy: Sendable {
    private let file: ResourceFile
    private let writer: ResourceWriter
    private let offset = Mutex<Int64>(0)

    /// Starts a copy from the beginning of a file.
    ///
    /// - Parameter limit: the largest size, in bytes.
    /// - Throws: ``StorageError/tooLarge(_:)``, or another ``StorageError`` if the copy cannot be created.
    public init(of file: ResourceFile, into store: ResourceStore, limit: Int64) throws(StorageError) {
        guard file.size <= limit else {
            throw .tooLarge("the file has \(file.size) bytes, the limit is \(limit)")
        }
        self.file = file
        writer = try store.writer(limit: limit)
    }

    /// Copies the next bytes, at most ``FileHash/stepBytes``; blocks.
    ///
    /// - Returns: whether there are more.
    /// - Throws: ``StorageError`` if reading or writing fails.
    public func next() throws(StorageError) -> Bool {
        try offset.withLock { (offset) throws(StorageError) in
            let end = min(offset + FileHash.stepBytes, file.size)
            while offset < end {
                let bytes = try file.read(
                    offset: offset,
                    count: Int(min(end - offset, Int64(ResourceStore.stepBytes)))
                )
                if bytes.isEmpty { return false }
                try writer.append(bytes)
                offset += Int64(bytes.count)
            }
            return offset < file.size
        }
    }

    /// Makes the copy durable under its digest; blocks.
    ///
    /// - Parameter verifies: if the bytes are already stored, reads them and compares them with the digest.
    public func finish(verifies: Bool = false) throws(StorageError) -> StoredResource {
        try writer.finish(verifies: verifies)
    }

    /// Removes the copied bytes; does nothing after ``finish(verifies:)`` or an earlier call.
    public func cancel() { writer.cancel() }
}
