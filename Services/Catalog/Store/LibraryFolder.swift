import Glibc
import Hosting
import Logging
import Storage
import Synchronization

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

    /// The extension of a database file that was moved to a server.
    static let movedExtension = ".moved"

    /// Refuses a folder whose database was moved to a server, if no server is named.
    static func requireNotMoved(_ configuration: CatalogConfiguration) throws(StorageError) {
        let moved = configuration.library + "/library.sqlite" + movedExtension
        guard configuration.server == nil, access(configuration.library + "/library.sqlite", F_OK) != 0,
            access(moved, F_OK) == 0
        else { return }
        throw .offline(
            "the library in \(configuration.library) was moved to PostgreSQL: name its database with --store, or move it "
                + "back with `safelight library migrate`"
        )
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

    /// Records the folder of a library, so that no new library is created there while its volume is missing. If the
    /// record cannot be written, the library is used anyway, and a warning names the consequence.
    static func remember(_ path: String, _ history: String, in known: KnownLibraries?, _ logger: Logger) {
        guard let known else { return }
        do throws(StorageError) {
            try known.remember(path, history: history)
        } catch {
            logger.warning(
                "the folder of the library cannot be recorded; without its volume a new library would be created there",
                metadata: ["state": "\(known.folder)", "error": "\(error.message)"]
            )
        }
    }
}

/// The library's lock, held until every other component has stopped.
final class LibraryLock: Sendable {
    private let file: Mutex<LockFile?>

    init(_ folder: String) throws {
        file = Mutex(try LibraryFolder.lock(folder))
    }

    func release() { file.withLock { $0 = nil } }
}
