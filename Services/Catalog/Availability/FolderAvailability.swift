import Contracts
import Glibc
import Storage

/// The availability of the folder of an open library.
struct FolderAvailability: Sendable {
    /// A problem of the folder.
    enum Finding {
        case problem(LibraryStatus.Problem)
        /// Another complete library is in the folder, or this one on a disk that was mounted again as another device,
        /// and no program is using it.
        case replaced
    }

    private let folder: String
    private let database: FilePresence
    private let resources: ResourceStore

    /// - Throws: ``StorageError`` if the database does not exist
    init(folder: String, database: String, resources: ResourceStore) throws(StorageError) {
        self.folder = folder
        self.database = try FilePresence(of: database)
        self.resources = resources
    }

    /// Checks the folder; returns nil if everything exists and can be written. It blocks for a few system calls.
    func check() -> Finding? {
        if let absence = database.absence() {
            if case .relinquished = absence, access(folder, F_OK) == 0 {
                if isLocked { return .problem(.folder(.switching)) }
                if access(database.path, F_OK) == 0 { return .replaced }
            }
            return .problem(Self.problem(absence))
        }
        if let absence = resources.absence() { return .problem(Self.problem(absence)) }
        var isReadOnly = false
        for path in [folder] + resources.foldersToWrite {
            var status = statvfs()
            guard statvfs(path, &status) == 0 else { return .problem(.folder(.offline)) }
            if status.f_flag & UInt(ST_RDONLY) != 0 || access(path, W_OK) != 0 { isReadOnly = true }
        }
        return isReadOnly ? .problem(.folder(.readOnly)) : nil
    }

    private static func problem(_ absence: StorageError) -> LibraryStatus.Problem {
        if case .relinquished = absence { return .folder(.relinquished) }
        return .folder(.offline)
    }

    /// True if another program, for example a restore, has locked the folder that is at the path now.
    private var isLocked: Bool {
        let file = open(folder + "/lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return false }
        defer { close(file) }
        return flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }
}

extension LibraryStatus.Problem {
    /// The database server does not answer. Its address and its error are only in the log.
    static let databaseServer = LibraryStatus.Problem(
        .offline,
        "the library's database server does not answer; the catalog's log has the reason. Start PostgreSQL or wait until "
            + "it is reachable again"
    )

    /// The problem of a state with its text, which has no paths of this machine.
    static func folder(_ state: AvailabilityState) -> LibraryStatus.Problem {
        let message =
            switch state {
            case .offline: "the disk of the library is not there; mount it again"
            case .relinquished:
                "the library's folder was moved or deleted; put it back, or restore a backup to its place"
            case .switching: "another library is being put into the library's folder; wait until it is complete"
            case .readOnly: "the library's folder is read-only; mount it for writing, or change its permissions"
            case .full: "the disk of the library is full; free some space"
            case .busy: "the database is locked by another program; end that program"
            case .available, .storeOffline, .unreachable: ""
            }
        return LibraryStatus.Problem(state, message)
    }
}
