import CProcess
import Glibc

/// The folders below which clients may name files.
///
/// A path is opened relative to its root with `openat2`, and the kernel refuses to leave the root: through `..`,
/// absolute links or links to the outside, even if they are changed at the same time.
public final class PathAllowlist: Sendable {
    /// The roots: absolute paths without a trailing slash.
    public let roots: [String]
    private let folders: [Int32]

    /// Makes an allowlist of existing folders.
    ///
    /// Throws ``StorageError`` with the root that cannot be opened.
    public init(roots: [String]) throws(StorageError) {
        var trimmed: [String] = []
        var opened: [Int32] = []
        do throws(StorageError) {
            for root in roots {
                guard root.hasPrefix("/") else { throw .invalid("the root \(root) is not an absolute path") }
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
    /// Throws ``StorageError/invalid(_:)`` for a path that is not below a root or leads out of it,
    /// ``StorageError/notFound(_:)``, ``StorageError/io(_:)`` for a file that is not regular.
    public func open(_ path: String) throws(StorageError) -> ResourceFile {
        guard !path.utf8.contains(0) else { throw .invalid("a path must not contain a zero byte") }
        for (root, folder) in zip(roots, folders) {
            let prefix = root == "/" ? "/" : root + "/"
            guard path.hasPrefix(prefix), path.utf8.count > prefix.utf8.count else { continue }
            let relative = String(path.dropFirst(prefix.count))
            // O_NONBLOCK, because opening a named pipe would otherwise wait for its writer.
            let number = safelight_open_beneath(folder, relative, O_RDONLY | O_NONBLOCK | O_NOCTTY)
            guard number >= 0 else {
                let reason = errno
                throw reason == EXDEV ? .invalid("\(path) leads out of \(root)") : .system(reason, "open \(path)")
            }
            return try ResourceFile(Descriptor(owning: number), digest: nil)
        }
        throw .invalid("\(path) is not below any folder that the service may read")
    }

    /// Removes a file below a root if it still has the given identity.
    ///
    /// Throws ``StorageError/resourceChanged(_:)`` if the path now names another file; otherwise like ``open(_:)``.
    public func remove(_ path: String, ifStill identity: FileIdentity) throws(StorageError) {
        guard let slash = path.lastIndex(of: "/") else { throw .invalid("\(path) is not an absolute path") }
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
        throw .invalid("\(path) is not below any folder that the service may read")
    }
}

extension ResourceFile {
    /// Checks that a referenced file has the identity it had before.
    ///
    /// Throws ``StorageError/resourceChanged(_:)`` if it has not.
    public func require(_ identity: FileIdentity) throws(StorageError) {
        guard try FileIdentity(of: self) == identity else {
            throw .resourceChanged("the referenced file was changed or replaced; import it again")
        }
    }
}
