import Basics
import Synchronization

/// Copies an open file into a store in steps, so that other work can run between them.
///
/// Releasing it before ``finish(verifies:)`` or ``stage(verifies:)`` removes the copied bytes.
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
    /// - Returns: true if there are more.
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

    /// Names the copy by its digest without waiting for the disk; ``ResourceStore/makeDurable(_:)`` must follow.
    public func stage(verifies: Bool = false) throws(StorageError) -> StagedResource {
        try writer.stage(verifies: verifies)
    }

    /// Removes the copied bytes; does nothing after ``finish(verifies:)``, ``stage(verifies:)`` or an earlier call.
    public func cancel() { writer.cancel() }
}
