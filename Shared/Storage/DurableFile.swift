import Glibc

/// Small files that are replaced atomically: a reader sees either the old or the new content, also after a power
/// failure.
public enum DurableFile {
    /// Writes a temporary file and renames it; durable when it returns.
    public static func replace(_ path: String, with bytes: [UInt8]) throws(StorageError) {
        let partial = path + ".part"
        do throws(StorageError) {
            let file = try Descriptor(opening: partial, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
            try file.write(bytes)
            try file.sync()
        } catch {
            unlink(partial)
            throw error
        }
        try commit(partial, as: path)
    }

    /// Syncs and renames a temporary file that was written elsewhere; durable when it returns.
    public static func commit(_ partial: String, as path: String) throws(StorageError) {
        try Descriptor(opening: partial, O_RDONLY).sync()
        guard rename(partial, path) == 0 else { throw .system(errno, "rename to \(path)") }
        try DirectoryOperations.sync(path.lastIndex(of: "/").map { String(path[..<$0]) + "/" } ?? ".")
    }

    /// Opens an existing file for reading.
    public static func open(_ path: String) throws(StorageError) -> ResourceFile {
        try ResourceFile(Descriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK), digest: nil)
    }
}
