import CProcess
import Glibc

/// The folders below which clients may name files.
///
/// A path is opened relative to its root, and the kernel itself refuses to leave it: `..`, absolute links and links out
/// of the root lead nowhere, also when they are changed in the same moment.
public final class FileFence: Sendable {
    /// The roots, absolute, without a slash at the end.
    public let roots: [String]
    private let folders: [Int32]

    /// A fence around folders that exist.
    ///
    /// Throws ``StorageError`` naming the root that cannot be opened.
    public init(roots: [String]) throws(StorageError) {
        var trimmed: [String] = []
        var opened: [Int32] = []
        do throws(StorageError) {
            for root in roots {
                guard root.hasPrefix("/") else { throw .invalid("the root \(root) is no absolute path") }
                var path = root[...]
                while path.count > 1, path.hasSuffix("/") { path.removeLast() }
                opened.append(try Descriptor(opening: String(path), O_RDONLY | O_DIRECTORY).release())
                trimmed.append(String(path))
            }
        } catch {
            for folder in opened { _ = close(folder) }
            throw error
        }
        self.roots = trimmed
        self.folders = opened
    }

    deinit { for folder in folders { _ = close(folder) } }

    /// Opens a regular file below a root for reading.
    ///
    /// Throws ``StorageError/invalid(_:)`` for a path that is below no root or leads out of it,
    /// ``StorageError/notFound(_:)``, ``StorageError/io(_:)`` for what is no regular file.
    public func open(_ path: String) throws(StorageError) -> ResourceFile {
        guard !path.utf8.contains(0) else { throw .invalid("a path has no zero byte") }
        for (root, folder) in zip(roots, folders) {
            let prefix = root == "/" ? "/" : root + "/"
            guard path.hasPrefix(prefix), path.utf8.count > prefix.utf8.count else { continue }
            let relative = String(path.dropFirst(prefix.count))
            // Not blocking: opening a named pipe must not wait for its writer.
            let number = safelight_open_beneath(folder, relative, O_RDONLY | O_NONBLOCK | O_NOCTTY)
            guard number >= 0 else {
                let reason = errno
                throw reason == EXDEV ? .invalid("\(path) leads out of \(root)") : .system(reason, "open \(path)")
            }
            return try ResourceFile(Descriptor(owning: number), digest: nil)
        }
        throw .invalid("\(path) is below none of the folders that the service may read")
    }

    /// Removes a file below a root, if it is still the one that was seen.
    ///
    /// Throws ``StorageError/resourceChanged(_:)`` where another file has its name now; else as ``open(_:)``.
    public func remove(_ path: String, ifStill identity: FileIdentity) throws(StorageError) {
        guard let slash = path.lastIndex(of: "/") else { throw .invalid("\(path) is no absolute path") }
        let name = String(path[path.index(after: slash)...])
        for (root, folder) in zip(roots, folders) {
            let prefix = root == "/" ? "/" : root + "/"
            guard path.hasPrefix(prefix), !name.isEmpty else { continue }
            let inside = path[..<slash].dropFirst(prefix.count)
            let number = safelight_open_beneath(folder, inside.isEmpty ? "." : String(inside), O_RDONLY | O_DIRECTORY)
            guard number >= 0 else { throw .system(errno, "open the folder of \(path)") }
            defer { _ = close(number) }
            try open(path).require(identity)
            guard unlinkat(number, name, 0) == 0 else { throw .system(errno, "remove \(path)") }
            return
        }
        throw .invalid("\(path) is below none of the folders that the service may read")
    }
}

/// What tells that a file which is referenced, and not copied in, is still the same.
public struct FileIdentity: Sendable, Hashable {
    /// The device and the number of the file on it.
    public var device: UInt64, inode: UInt64
    /// The size in bytes.
    public var size: Int64
    /// When the content was last changed, in nanoseconds since 1970.
    public var modified: Int64

    /// An identity that was stored.
    public init(device: UInt64, inode: UInt64, size: Int64, modified: Int64) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
    }

    /// The identity of an open file, now.
    ///
    /// Throws ``StorageError`` of the disk.
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

extension ResourceFile {
    /// Makes sure that a referenced file is the one that was seen before.
    ///
    /// Throws ``StorageError/resourceChanged(_:)`` where it is not.
    public func require(_ identity: FileIdentity) throws(StorageError) {
        guard try FileIdentity(of: self) == identity else {
            throw .resourceChanged("the referenced file was changed or replaced; import it again")
        }
    }
}
