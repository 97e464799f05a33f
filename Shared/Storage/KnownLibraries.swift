import Basics
import Glibc

/// The paths at which there were libraries, each with the history of the library that was last there.
///
/// They are recorded outside of the libraries' folders: a path without a library that had one before may be the mount
/// point of a volume that is not mounted, where a new and empty library must not be created unasked. Each path has one
/// small file, named by the path's SHA-256.
public struct KnownLibraries: Sendable, Equatable {
    /// The folder of the files; it need not exist.
    public let folder: String

    /// The maximum number of recorded paths; beyond it, those of the libraries that were not opened for the longest
    /// time are removed.
    public static let limit = 1000
    private static let maxFileBytes = 8 << 10

    /// - Parameter folder: an absolute path
    public init(folder: String) { self.folder = folder }

    /// Returns the history of the library that was last at a path; nil if none is known.
    public func history(at path: String) -> String? {
        guard let file = try? Descriptor(opening: self.file(of: path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK),
            let bytes = try? file.read(count: Self.maxFileBytes, at: 0)
        else { return nil }
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
        guard lines.count == 2, lines[1].elementsEqual(Self.normalized(path).utf8) else { return nil }
        return String(decoding: lines[0], as: UTF8.self)
    }

    /// Refuses a path that has no library although it had one.
    ///
    /// - Parameter database: the file of the database, below the path
    /// - Throws: ``StorageError/offline(_:)``, whose message names the possible remedies
    public func requireLibrary(at path: String, database: String) throws(StorageError) {
        guard access(database, F_OK) != 0, errno == ENOENT || errno == ENOTDIR, let history = history(at: path)
        else { return }
        throw .offline(
            "\(path) has no library, but had the library \(history) before. If its volume is not mounted, mount it and "
                + "start again. If the library was moved, name its folder with --library. If it was deleted, start "
                + "once with --new-library, or restore a backup with `safelight restore`"
        )
    }

    /// Records that a library was opened at a path. Durable when it returns.
    ///
    /// - Parameter history: the id of the library's history
    /// - Throws: ``StorageError`` if the folder cannot be written
    public func remember(_ path: String, history: String) throws(StorageError) {
        var created = ""
        for part in folder.split(separator: "/") {
            created += "/\(part)"
            guard mkdir(created, 0o700) == 0 || errno == EEXIST || access(created, F_OK) == 0 else {
                throw .system(errno, "mkdir \(created)")
            }
        }
        try trim()
        try DurableFile.replace(file(of: path), with: Array("\(history)\n\(Self.normalized(path))".utf8))
    }

    /// Removes the record of a path, so that a new library can begin there.
    ///
    /// - Throws: ``StorageError`` if the folder cannot be written
    public func forget(_ path: String) throws(StorageError) {
        guard unlink(file(of: path)) == 0 || errno == ENOENT || errno == ENOTDIR else {
            throw .system(errno, "unlink \(file(of: path))")
        }
    }

    private func file(of path: String) -> String {
        folder + "/" + SHA256.hash(data: Array(Self.normalized(path).utf8)).hexadecimal
    }

    /// Returns the path without empty components. Links are not followed: they may lead to the missing volume.
    private static func normalized(_ path: String) -> String {
        "/" + path.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }

    private func trim() throws(StorageError) {
        let names = try DirectoryOperations.names(in: folder)
        guard names.count >= Self.limit else { return }
        var oldest: [(time: Int, name: String)] = []
        for name in names {
            var status = stat()
            if lstat("\(folder)/\(name)", &status) == 0 { oldest.append((status.st_mtim.tv_sec, name)) }
        }
        oldest.sort { $0.time < $1.time }
        for (_, name) in oldest.prefix(names.count - Self.limit + 1) { unlink("\(folder)/\(name)") }
    }
}
