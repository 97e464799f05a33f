import Glibc

/// A file or folder that existed once, to find out whether its path still leads to it.
public struct FilePresence: Sendable {
    /// The path.
    public let path: String
    private let device: dev_t
    private let inode: ino_t

    /// Records the file or folder that is at a path now.
    ///
    /// - Throws: ``StorageError`` if there is no file, or the system call fails.
    public init(of path: String) throws(StorageError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .system(errno, "stat \(path)") }
        (self.path, device, inode) = (path, status.st_dev, status.st_ino)
    }

    /// Returns the reason why the path no longer leads to the file; nil if it does.
    ///
    /// If the path is on another filesystem than before, its volume is not mounted: ``StorageError/offline(_:)``. If
    /// the volume is mounted, the file was moved, renamed or deleted: ``StorageError/relinquished(_:)``. A file at the
    /// path on another filesystem counts as moved too: its disk may be mounted again as another device. A folder there
    /// may be the mount point.
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
        let isOtherFile = current == path && status.st_mode & S_IFMT == S_IFREG
        if status.st_dev != device, !isOtherFile { return .offline("the volume of \(path) is not mounted") }
        if current == path, status.st_dev == device, status.st_ino == inode { return nil }
        return .relinquished("\(path) was moved, renamed or deleted")
    }
}

// MARK: - The store

/// The presence of the store at the path where it was opened.
extension ResourceStore {
    /// Returns the reason why the folder of the store is no longer at its path: ``StorageError/offline(_:)`` or
    /// ``StorageError/relinquished(_:)``; nil if it is.
    public func absence() -> StorageError? { presence.absence() }

    /// The folders in which every stored file is created.
    public var foldersToWrite: [String] { [root, incoming] }

    /// Writes a temporary file of 1 MiB and removes it, to find out whether files can be stored.
    ///
    /// - Throws: ``StorageError`` if that fails.
    public func probe() throws(StorageError) {
        let writer = try writer(limit: Int64(Self.stepBytes))
        defer { writer.cancel() }
        try writer.append([UInt8](repeating: 0, count: Self.stepBytes))
    }
}
