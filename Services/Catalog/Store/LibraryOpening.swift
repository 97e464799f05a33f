import GRDB
import Logging
import Storage

/// The database and the head file of a library that was just opened or created.
///
/// The head file detects copies that were restored or moved: the database is behind the head file, or the files are not
/// those that the head file was written for. The library then begins a new history that continues above the sequences
/// used before, so that no revision is assigned twice.
struct LibraryOpening {
    let database: any LibraryDatabase
    let headFile: HeadFile
    /// The file that belongs to the library and always exists: the database, or else the head file.
    let path: String
    /// The head at this start.
    let head: LibraryHead
    /// The newest sequence that this catalog has acknowledged before this start, or that the database had then.
    let acknowledgedSequence: Int64

    /// Opens or creates the library in a folder whose lock the caller holds, with the parameters of ``LibraryStore``.
    ///
    /// - Parameter remoteResources: the files that fetches check for `isLocal`
    init(
        folder: String,
        server: String?,
        replica: String?,
        options: LibraryStore.Options,
        remoteResources: LibraryStore.RemoteResources,
        now: Int64,
        newHistoryID: String,
        logger: Logger
    ) throws {
        let head: LibraryHead
        let reason: NewHistory?
        let remembered: HeadFile.Head?
        if let server {
            let library = try PostgreSQLLibraryDatabase(server, replica: replica, readers: options.readers) { digest in
                remoteResources.value?.isLocal(digest) ?? true
            }
            let headFile = try HeadFile(path: "\(folder)/head")
            remembered = try headFile.load()
            (head, reason) = try library.open { [remembered] connection, isWriter in
                let store = HistoryStore(database: connection)
                guard !isWriter else {
                    return try Self.beginOnServer(store, remembered, folder, newHistoryID: newHistoryID, now: now)
                }
                guard let head = try store.head() else {
                    throw StorageError.busy("another catalog is creating the library now; start again later")
                }
                return (head, nil)
            }
            // A replica may not have replayed all that this catalog has acknowledged before.
            let before = remembered.flatMap { $0.library == head.library ? $0.sequence : nil } ?? 0
            let newest = max(head.sequence, before)
            try headFile.store(library: head.library, sequence: newest)
            library.noteCommitted(head.sequence)
            (database, self.headFile, path) = (library, headFile, headFile.path)
            acknowledgedSequence = newest
        } else {
            var options = options
            options.prepare = { database in
                database.add(function: FetchFunctions.isLocal { remoteResources.value })
                database.add(function: FetchFunctions.match)
                database.add(function: FetchFunctions.distance)
            }
            let file = try DatabaseFile(
                path: "\(folder)/library.sqlite",
                migrator: CatalogSchema.migrator,
                options: options
            )
            let oldHeadFile = try HeadFile(path: "\(folder)/head", database: file.path)
            remembered = try oldHeadFile.load()
            let origin = try oldHeadFile.origin()
            (head, reason) = try file.pool.write { [remembered] database in
                let store = HistoryStore(database: SQLConnection(database))
                return try Self.begin(store, remembered, origin, folder, newHistoryID: newHistoryID, now: now)
            }
            let headFile = try oldHeadFile.renew(library: head.library, sequence: head.sequence)
            (database, self.headFile, path) = (SQLiteLibraryDatabase(file: file), headFile, file.path)
            acknowledgedSequence = head.sequence
        }
        self.head = head
        if let reason {
            logger.warning(
                "the library begins a new history; clients will fetch again",
                metadata: [
                    "reason": "\(reason.rawValue)", "library.old": "\(remembered?.library ?? "unknown")",
                    "library.new": "\(head.library)", "sequence": "\(head.sequence)",
                ]
            )
        }
    }

    /// Creates the library on a server if there is none, and begins a new history if the server has lost commits that
    /// were acknowledged, or if a dump was loaded.
    ///
    /// A head file that is behind the database is normal: another catalog may have written since. Other catalogs may
    /// also have acknowledged sequences above that of the head file, so sequences are skipped.
    private static func beginOnServer(
        _ store: HistoryStore,
        _ remembered: HeadFile.Head?,
        _ folder: String,
        newHistoryID: String,
        now: Int64
    ) throws -> (head: LibraryHead, reason: NewHistory?) {
        try WriterElection.requireNotMoved(store.database)
        let isRestored = try PostgreSQLSchema.noteOrigin(store.database)
        guard let head = try store.head() else {
            return try begin(store, remembered, .unknown, folder, newHistoryID: newHistoryID, now: now)
        }
        let isBehind = remembered?.library == head.library && (remembered?.sequence ?? 0) > head.sequence
        let skipped = isRestored || isBehind ? LibraryRestore.gap : 0
        let sequence = max(remembered?.sequence ?? 0, head.sequence) + skipped
        let backfill = DerivedBackfillStore(database: store.database)
        if try backfill.isNeeded() {
            try backfill.run(date: now, sequence: head.sequence)
            try store.startNewHistory(library: newHistoryID, sequence: sequence)
            if skipped > 0 { try noteLostChanges(store, folder, now) }
            return (LibraryHead(library: newHistoryID, sequence: sequence, oldest: sequence), .backfill)
        }
        guard isRestored || isBehind else {
            // Another catalog began this history, or the database is that of another library: the files may belong to
            // either history.
            if remembered?.library != head.library, try ResourceStore.hasFiles(root: folder + "/resources") {
                try keepStoredBytes(store, folder, now)
            }
            return (head, nil)
        }
        try store.startNewHistory(library: newHistoryID, sequence: sequence)
        try noteLostChanges(store, folder, now)
        let reason = isBehind ? NewHistory.olderDatabase : .loadedDump
        return (LibraryHead(library: newHistoryID, sequence: sequence, oldest: sequence), reason)
    }

    /// The reason why a library begins a new history.
    private enum NewHistory: String {
        case olderDatabase = "the database is older than the head file: a copy of it was restored"
        case otherDatabase = "the database is another file: the folder was moved to another disk, copied or restored"
        case otherHead = "the head file is another file: the folder was moved to another disk, copied or restored"
        case noHead = "the head file is missing"
        case loadedDump = "the tables are not those of the last start: a dump was loaded"
        case backfill = "the database was written by an earlier version, with other smart albums or without moments"
    }

    /// Decides whether the database continues its history, and begins a new one if it does not.
    ///
    /// A copy of the folder lacks the changes that the library made after the copying. Sequences are therefore skipped,
    /// so that no revision is assigned twice.
    private static func begin(
        _ store: HistoryStore,
        _ remembered: HeadFile.Head?,
        _ origin: HeadFile.Origin,
        _ folder: String,
        newHistoryID: String,
        now: Int64
    ) throws -> (head: LibraryHead, reason: NewHistory?) {
        guard let head = try store.head() else {
            try requireNoLibrary(in: folder, remembered)
            try store.createLibrary(history: newHistoryID, sequence: 0, date: now)
            return (LibraryHead(library: newHistoryID, sequence: 0, oldest: 0), nil)
        }
        var sequence = max(remembered?.sequence ?? 0, head.sequence)
        let isOther = origin == .otherDatabase || origin == .otherHead
        let isOlder = remembered.map { $0.library != head.library || $0.sequence > head.sequence } ?? true
        let backfill = DerivedBackfillStore(database: store.database)
        let reason: NewHistory
        if try backfill.isNeeded() {
            try backfill.run(date: now, sequence: head.sequence)
            reason = .backfill
        } else if isOther {
            reason = origin == .otherDatabase ? .otherDatabase : .otherHead
        } else {
            guard isOlder else { return (head, nil) }
            reason = remembered == nil ? .noHead : .olderDatabase
        }
        if isOther || reason == .noHead { sequence += LibraryRestore.gap }
        try store.startNewHistory(library: newHistoryID, sequence: sequence)
        if isOther || isOlder { try noteLostChanges(store, folder, now) }
        return (LibraryHead(library: newHistoryID, sequence: sequence, oldest: sequence), reason)
    }

    /// Refuses to begin a library in a folder that has the files of one: its database is lost or elsewhere, and a new
    /// library, which refers to none of the files, would have them collected.
    private static func requireNoLibrary(in folder: String, _ remembered: HeadFile.Head?) throws {
        guard try remembered != nil || ResourceStore.hasFiles(root: folder + "/resources") else { return }
        throw StorageError.corrupt(
            "\(folder) has the files of a library, but the database is empty. Nothing was created or removed. "
                + "If the library's database is on a server, name it with --store. If it is lost, restore a backup with "
                + "`safelight restore` into another folder. To begin a new library here, move `head` and `resources` away"
        )
    }

    /// Prepares for a database that may lack changes of the library: their files are kept, and the objects in the
    /// object store are confirmed again, because some may have been deleted since.
    private static func noteLostChanges(_ store: HistoryStore, _ folder: String, _ now: Int64) throws {
        try keepStoredBytes(store, folder, now)
        try UploadStateStore(database: store.database).confirmAgain()
    }

    /// Records that bytes stored before now may belong to changes that the database has lost, so that the collector
    /// keeps them although no asset refers to them. After a power failure the clock may be behind, so the time of the
    /// last stored file counts too.
    private static func keepStoredBytes(_ store: HistoryStore, _ folder: String, _ now: Int64) throws {
        let last = try ResourceStore.lastStored(root: folder + "/resources") ?? 0
        // The date never moves back.
        let before = Int64(try CounterChanges.value(of: ResourceCollector.keptCounter, store.database))
        try CounterChanges.set(max(before, now, last), as: ResourceCollector.keptCounter, store.database)
    }
}
