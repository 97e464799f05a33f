import Foundation

/// A small file system in memory, for tests of a full disk.
///
/// Mounting needs root. Without it the test is cancelled, or fails with `CI=true`.
public struct SmallDisk: Sendable {
    /// The folder at which it is mounted.
    public let path: String

    /// Mounts a file system at a folder, which is created.
    public init(_ path: String, mebibytes: Int) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let isMounted = mount("tmpfs", path, "tmpfs", 0, "size=\(mebibytes)m") == 0
        _ = try Needed.found(isMounted ? true : nil, "the privilege to mount a small disk (root)")
        self.path = path
    }

    /// The number of free bytes.
    public var freeBytes: Int {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return 0 }
        return Int(status.f_bavail * status.f_frsize)
    }

    /// Unmounts the file system, even while files are open (MNT_DETACH).
    public func unmount() { umount2(path, 2) }
}
