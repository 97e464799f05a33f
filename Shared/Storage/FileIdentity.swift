import CProcess
import Glibc

/// The attributes by which a change of a referenced file is detected.
public struct FileIdentity: Sendable, Hashable {
    /// The device number, and the inode number on it.
    public var device: UInt64, inode: UInt64
    /// The size in bytes.
    public var size: Int64
    /// The modification time in nanoseconds since 1970.
    public var modified: Int64

    /// Makes an identity from stored values.
    public init(device: UInt64, inode: UInt64, size: Int64, modified: Int64) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
    }

    /// Reads the current identity of an open file.
    ///
    /// Throws ``StorageError`` if the system call fails.
    public init(of file: ResourceFile) throws(StorageError) {
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw .system(errno, "stat") }
        let (seconds, overflow) = Int64(status.st_mtim.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        self.init(
            device: UInt64(status.st_dev),
            inode: UInt64(status.st_ino),
            size: Int64(status.st_size),
            modified: overflow ? .max : seconds &+ Int64(status.st_mtim.tv_nsec)
        )
    }
}
