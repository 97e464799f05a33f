import Glibc
import Hosting
import Logging
import Storage

/// The folder of a library.
enum LibraryFolder {
    /// Creates the folder and its missing parents with mode 0700, and syncs them to disk before it returns.
    static func make(_ path: String) throws(HostingError) {
        var current = ""
        for part in path.split(separator: "/") {
            let parent = current.isEmpty ? "/" : current
            current += "/\(part)"
            if mkdir(current, 0o700) == 0 {
                let descriptor = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                if descriptor >= 0 {
                    fsync(descriptor)
                    close(descriptor)
                }
            } else if errno != EEXIST {
                let reason = String(cString: strerror(errno))
                throw .badSetting(source: "--library", reason: "\(current) cannot be created: \(reason)")
            }
        }
    }

    /// Locks the folder against other processes.
    ///
    /// - Parameter advice: what the user can do if the folder is in use
    static func lock(
        _ path: String,
        advice: String = "stop it or choose another --library"
    ) throws(StorageError) -> LockFile {
        try LockFile(path: path + "/lock", program: "catalog", using: path, advice: advice)
    }

    /// Remembers that a library is in its folder. A state folder that cannot be written does not keep the library away
    /// from its users: a warning names the consequence.
    static func remember(_ path: String, _ history: String, in known: KnownLibraries?, _ logger: Logger) {
        guard let known else { return }
        do throws(StorageError) {
            try known.remember(path, history: history)
        } catch {
            logger.warning(
                "the place of the library cannot be remembered; without its volume a new library would begin there",
                metadata: ["state": "\(known.folder)", "error": "\(error.message)"]
            )
        }
    }
}
