import Glibc

/// A file or folder that was there once, to find out whether its path still leads to it.
public struct FilePresence: Sendable {
    /// The path.
    public let path: String
    private let device: dev_t
    private let inode: ino_t

    /// Remembers what is at a path now.
    ///
    /// - Throws: ``StorageError`` if there is nothing, or the system call fails.
    public init(of path: String) throws(StorageError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .system(errno, "stat \(path)") }
        (self.path, device, inode) = (path, status.st_dev, status.st_ino)
    }

    /// Returns why the path does not lead to the file any more; nil if it does.
    ///
    /// A path on another filesystem than before is one whose volume is not mounted: ``StorageError/offline(_:)``. If its
    /// volume is there, the file was moved, renamed or deleted: ``StorageError/relinquished(_:)``.
    public func absence() -> StorageError? {
        var status = stat()
        var current = path
        while stat(current, &status) != 0 {
            let problem = errno
            guard problem == ENOENT || problem == ENOTDIR, let slash = current.lastIndex(of: "/") else {
                return .offline("\(path) cannot be accessed: \(String(cString: strerror(problem)))")
            }
            current = slash == current.startIndex ? "/" : String(current[..<slash])
        }
        if status.st_dev != device { return .offline("the volume of \(path) is not mounted") }
        if current == path, status.st_ino == inode { return nil }
        return .relinquished("\(path) was moved, renamed or deleted")
    }
}
