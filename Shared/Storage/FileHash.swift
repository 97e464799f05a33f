import Basics
import Synchronization

/// The digest of a file's bytes, computed in steps, so that other work can run between them.
public final class FileHash: Sendable {
    /// Bytes that one step reads: 8 MiB.
    public static let stepBytes: Int64 = 8 << 20

    private struct State {
        var hash = SHA256()
        var offset: Int64 = 0
    }

    private let file: ResourceFile
    private let state = Mutex(State())

    /// Hashes the bytes that the file had when it was opened.
    public init(of file: ResourceFile) { self.file = file }

    /// Reads the next bytes; blocks.
    ///
    /// - Returns: the digest, once everything was read; nil before.
    /// - Throws: ``StorageError`` of the disk.
    public func next() throws(StorageError) -> ResourceDigest? {
        try state.withLock { (state) throws(StorageError) in
            let end = min(state.offset + Self.stepBytes, file.size)
            while state.offset < end {
                let count = Int(min(end - state.offset, Int64(ResourceStore.stepBytes)))
                let bytes = try file.read(offset: state.offset, count: count)
                // Somebody cut the file off: the digest is that of what is left.
                if bytes.isEmpty { return ResourceDigest(state.hash.finalize()) }
                state.hash.update(data: bytes)
                state.offset += Int64(bytes.count)
            }
            return state.offset < file.size ? nil : ResourceDigest(state.hash.finalize())
        }
    }
}

/// A copy of an open file into a store, made in steps, so that other work can run between them.
///
/// Dropping it without ``finish()`` removes what was copied.
public final class ResourceCopy: Sendable {
    private let file: ResourceFile
    private let writer: ResourceWriter
    private let offset = Mutex<Int64>(0)

    /// Begins to copy a file from its beginning.
    ///
    /// - Parameter limit: the largest size, in bytes.
    /// - Throws: ``StorageError/tooLarge(_:)``, errors of the disk.
    public init(of file: ResourceFile, into store: ResourceStore, limit: Int64) throws(StorageError) {
        guard file.size <= limit else {
            throw .tooLarge("the file has \(file.size) bytes, the limit is \(limit)")
        }
        self.file = file
        writer = try store.writer(limit: limit)
    }

    /// Copies the next bytes, as many as ``FileHash/stepBytes``; blocks.
    ///
    /// - Returns: whether there are more.
    /// - Throws: ``StorageError`` of the disk.
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

    /// Makes the bytes durable under their digest; blocks.
    ///
    /// - Parameter verifies: also reads a file that is stored already and compares it with its digest.
    public func finish(verifies: Bool = false) throws(StorageError) -> StoredResource {
        try writer.finish(verifies: verifies)
    }

    /// Removes what was copied; harmless when done already.
    public func cancel() { writer.cancel() }
}
