import Contracts
import GRDB
import Hosting
import JSONValue
import Logging
import PhotoModel
import Storage
import Synchronization

/// The library's database and the head file beside it, which records the newest sequence.
final class LibraryStore: Sendable {
    typealias Options = DatabaseFile.Options

    /// The database; only the types in Store and their tests use it.
    let database: any LibraryDatabase
    let headFile: HeadFile
    /// The folder of the library.
    let folder: String
    /// The file that belongs to the library and is always there: the database, or else the head file.
    let path: String
    /// The history of the library since this start.
    let history: String
    /// The newest sequence at this start.
    let startSequence: Int64
    /// The newest sequence that this catalog has acknowledged before this start, or that the database has shown then.
    let acknowledgedSequence: Int64
    /// Serializes every write that is not part of a group of transactions.
    private let writes = WriteSerializer()
    /// As many reads at a time as there are connections for them, those of one client not on all.
    private let readPermits: FairSemaphore<WorkSource>
    private let remoteResources: RemoteResources

    /// The files of a library with remote storage; nil without, where all bytes are on this machine.
    private final class RemoteResources: Sendable {
        private let store = Mutex<ResourceStore?>(nil)

        var value: ResourceStore? {
            get { store.withLock { $0 } }
            set { store.withLock { $0 = newValue } }
        }
    }

    /// Has fetches look into the files for what is on this machine.
    func useLocalFiles(of resources: ResourceStore) { remoteResources.value = resources }

    /// Opens or creates the library in a folder whose lock the caller holds.
    ///
    /// The head file detects copies that were restored or moved: the database is behind the head file, or the files are
    /// not those that the head file was written for. The library then gets a new history that continues above the
    /// numbers used before, so that no revision is assigned twice.
    ///
    /// - Parameters:
    ///   - server: the address of the database on PostgreSQL; nil for a file in the folder
    ///   - replica: the address of a replica for reads; nil to read at `server`
    ///   - now: microseconds since 1970, the date of a new library
    ///   - newHistory: 32 hexadecimal digits that were never used before
    init(
        folder: String,
        server: String? = nil,
        replica: String? = nil,
        options: Options = Options(),
        now: Int64,
        newHistory: String,
        logger: Logger
    ) throws {
        readPermits = FairSemaphore(permits: options.readers, permitsPerSource: max(1, options.readers - 1))
        let remoteResources = RemoteResources()
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
                    return try Self.beginOnServer(store, remembered, folder, newHistory: newHistory, now: now)
                }
                guard let head = try store.head() else {
                    throw StorageError.busy("another catalog is just creating the library; start again")
                }
                return (head, nil)
            }
            // A replica may show less than this catalog has acknowledged before.
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
            let remembering = try HeadFile(path: "\(folder)/head", database: file.path)
            remembered = try remembering.load()
            let origin = try remembering.origin()
            (head, reason) = try file.pool.write { [remembered] database in
                let store = HistoryStore(database: SQLConnection(database))
                return try Self.begin(store, remembered, origin, folder, newHistory: newHistory, now: now)
            }
            let headFile = try remembering.renew(library: head.library, sequence: head.sequence)
            (database, self.headFile, path) = (SQLiteLibraryDatabase(file: file), headFile, file.path)
            acknowledgedSequence = head.sequence
        }
        if let reason {
            logger.warning(
                "the library begins a new history; clients will fetch again",
                metadata: [
                    "reason": "\(reason.rawValue)", "library.old": "\(remembered?.library ?? "unknown")",
                    "library.new": "\(head.library)", "sequence": "\(head.sequence)",
                ]
            )
        }
        self.remoteResources = remoteResources
        self.folder = folder
        self.history = head.library
        self.startSequence = head.sequence
    }

    /// Begins the library on a server, or a new history if the server has lost commits that were acknowledged, or if a
    /// dump was loaded. Another catalog may have gone on, so a head file that is behind means nothing. Other catalogs
    /// may have shown more than the head file says, so sequences are skipped.
    private static func beginOnServer(
        _ store: HistoryStore,
        _ remembered: HeadFile.Head?,
        _ folder: String,
        newHistory: String,
        now: Int64
    ) throws -> (head: LibraryHead, reason: NewHistory?) {
        try WriterElection.requireNotMoved(store.database)
        let isRestored = try PostgreSQLSchema.noteOrigin(store.database)
        guard let head = try store.head() else {
            return try begin(store, remembered, .unknown, folder, newHistory: newHistory, now: now)
        }
        let isBehind = remembered?.library == head.library && (remembered?.sequence ?? 0) > head.sequence
        let skipped = isRestored || isBehind ? LibraryRestore.gap : 0
        let sequence = max(remembered?.sequence ?? 0, head.sequence) + skipped
        let backfill = DerivedBackfillStore(database: store.database)
        if try backfill.isNeeded() {
            try backfill.run(date: now, sequence: head.sequence)
            try store.startNewHistory(library: newHistory, sequence: sequence)
            if skipped > 0 { try noteLostChanges(store, folder, now) }
            return (LibraryHead(library: newHistory, sequence: sequence, oldest: sequence), .backfill)
        }
        guard isRestored || isBehind else {
            // The history of another catalog, or the database of another library: the files may be of either.
            if remembered?.library != head.library, try ResourceStore.hasFiles(root: folder + "/resources") {
                try keepStoredBytes(store, folder, now)
            }
            return (head, nil)
        }
        try store.startNewHistory(library: newHistory, sequence: sequence)
        try noteLostChanges(store, folder, now)
        let reason = isBehind ? NewHistory.olderDatabase : .loadedDump
        return (LibraryHead(library: newHistory, sequence: sequence, oldest: sequence), reason)
    }

    /// The reason why a library begins a new history.
    private enum NewHistory: String {
        case olderDatabase = "the database is older than the head file: a copy of it was restored"
        case otherDatabase = "the database is another file: the folder was moved to another disk, copied or restored"
        case otherHead = "the head file is another one: the folder was moved to another disk, copied or restored"
        case noHead = "the head file is missing"
        case loadedDump = "the database is at another place: a dump was loaded"
        case backfill = "the database was written by an earlier version, with other smart albums or without moments"
    }

    /// Decides whether the database continues its history, and begins a new one if it does not.
    ///
    /// A copy of the folder does not know what the library did after the copy was made. Sequences are therefore
    /// skipped, so that no revision is assigned twice.
    private static func begin(
        _ store: HistoryStore,
        _ remembered: HeadFile.Head?,
        _ origin: HeadFile.Origin,
        _ folder: String,
        newHistory: String,
        now: Int64
    ) throws -> (head: LibraryHead, reason: NewHistory?) {
        guard let head = try store.head() else {
            try requireNoLibrary(in: folder, remembered)
            try store.createLibrary(history: newHistory, sequence: 0, date: now)
            return (LibraryHead(library: newHistory, sequence: 0, oldest: 0), nil)
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
        try store.startNewHistory(library: newHistory, sequence: sequence)
        if isOther || isOlder { try noteLostChanges(store, folder, now) }
        return (LibraryHead(library: newHistory, sequence: sequence, oldest: sequence), reason)
    }

    /// Refuses to begin a library in a folder that has the files of one: its database is lost or is another one, and a new
    /// library, which refers to none of the files, would have them removed.
    private static func requireNoLibrary(in folder: String, _ remembered: HeadFile.Head?) throws {
        guard try remembered != nil || ResourceStore.hasFiles(root: folder + "/resources") else { return }
        throw StorageError.corrupt(
            "\(folder) has the files of a library, but the database is empty. Nothing was begun, and the files are kept. "
                + "If the library's database is on a server, name it with --store. If it is lost, restore a backup with "
                + "`safelight restore` into another folder. To begin a new library here, move `head` and `resources` away"
        )
    }

    /// Prepares for a database that may lack changes which the library has had: files of theirs stay, and the object
    /// store may have deleted since what the database says that it has.
    private static func noteLostChanges(_ store: HistoryStore, _ folder: String, _ now: Int64) throws {
        try keepStoredBytes(store, folder, now)
        try RemoteObjectStore(database: store.database).confirmAgain()
    }

    /// Notes that bytes stored before now may be those of changes that the database has lost, so that the collector
    /// keeps those to which nothing refers in its first round. After a power failure the clock may be behind, so the
    /// time of the last stored file counts too.
    private static func keepStoredBytes(_ store: HistoryStore, _ folder: String, _ now: Int64) throws {
        let last = try ResourceStore.lastStored(root: folder + "/resources") ?? 0
        // Files that were to stay before still do.
        let before = Int64(try CounterChanges.value(of: ResourceCollector.keptCounter, store.database))
        try CounterChanges.set(max(before, now, last), as: ResourceCollector.keptCounter, store.database)
    }

    /// Reads from one snapshot of the database, when it is the turn of the client for which the task works.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, while it waits or while it reads
    func read<Value: Sendable>(_ value: @escaping @Sendable (LibraryReader) throws -> Value) async throws -> Value {
        let result = try await readPermits.withPermit(for: WorkSource.current) {
            let cancellation = ReadCancellation()
            return try await withTaskCancellationHandler {
                try await database.read { connection in
                    var connection = connection
                    connection.cancellation = cancellation
                    return try value(LibraryReader(database: connection))
                }
            } onCancel: {
                cancellation.cancel()
            }
        }
        guard let result else { throw CancellationError() }
        return result
    }

    /// Writes a complete transaction without applying the rules; published edits are left out.
    func append(_ record: ChangeRecord, bytes: [UInt8]) async throws {
        var result = TransactionResult()
        (result.assets, result.collections, result.lists) = (record.assets, record.collections, record.lists)
        try await write { [result] database in
            var counters = CounterChanges()
            try StoredLibraryState(database).save(result, sequence: record.sequence, &counters)
            let history = HistoryStore(database: database)
            try history.append(record, bytes: bytes, &counters)
            try counters.save(database)
        }
    }

    /// Changes the quarantine. It is not a transaction of the history.
    func changeQuarantine<Value: Sendable>(
        _ change: @escaping @Sendable (QuarantineStore) throws -> Value
    ) async throws -> Value {
        try await write { try change(QuarantineStore(database: $0)) }
    }

    /// Changes the states of uploads to the object store. It is not a transaction of the history.
    func changeRemoteObjects<Value: Sendable>(
        _ change: @escaping @Sendable (RemoteObjectStore) throws -> Value
    ) async throws -> Value {
        try await write { try change(RemoteObjectStore(database: $0)) }
    }

    /// Changes the jobs that clients have created.
    func changeUploadJobs<Value: Sendable>(
        _ change: @escaping @Sendable (UploadJobStore) throws -> Value
    ) async throws -> Value {
        try await write { try change(UploadJobStore(database: $0)) }
    }

    private func write<Value: Sendable>(
        _ updates: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value {
        try await writes.run { try await database.write(updates) }
    }

    /// Returns the time last used for retention, in microseconds since 1970; if there is none yet, the date of the
    /// newest record or the library's creation date.
    func retentionTime() async throws -> Int64 {
        try await read { reader in
            let kept = try reader.counter(RetentionClock.counter)
            if kept > 0 { return Int64(kept) }
            let sql = """
                SELECT coalesce((SELECT date FROM change ORDER BY sequence DESC LIMIT 1), (SELECT created FROM library))
                """
            return try reader.database.first(sql) { $0.int64(0) } ?? 0
        }
    }

    /// Stores a number that is not part of the history.
    func remember(_ value: Int64, as counter: String) async throws {
        try await write { try CounterChanges.set(value, as: counter, $0) }
    }

    /// Reads and writes a little, in the database and where files are stored.
    ///
    /// - Throws: ``StorageError`` if that fails
    func probe(_ resources: ResourceStore) async throws {
        let count = try await read { Int64(try $0.counter(Self.probeCounter)) }
        // A standby catalog only reads the database.
        if election?.refusal == nil { try await remember(count &+ 1, as: Self.probeCounter) }
        try resources.probe()
    }

    private static let probeCounter = "probe"

    /// Calls `work` with the writing connection, on this thread, after the writes that wait for it. It blocks.
    func withWriter(_ work: (SQLConnection) -> Void) { database.withWriter(work) }

    /// Writes the write-ahead log into the database if it is large. It blocks.
    func checkpointIfDue() throws(StorageError) { try database.checkpointIfDue() }

    /// The election of the writer among several catalogs; nil for a file, whose folder only one catalog can open.
    var election: WriterElection? { (database as? PostgreSQLLibraryDatabase)?.election }

    /// The part of this catalog in the writing, and the number of the present writer if there may be several catalogs.
    var role: (CatalogRole, epoch: Int64?) {
        guard let election else { return (.writer, nil) }
        return (election.refusal == nil ? .writer : .standby, election.epoch)
    }

    /// True if the check at the start ran out of time.
    var isCheckUnfinished: Bool { database.isCheckUnfinished }

    /// The size of the write-ahead log in bytes; 0 if there is none.
    var walBytes: Int64 { database.walBytes }

    /// Returns the failure of the database or its disk that an error reports; nil for any other error.
    func storageError(_ error: any Error) -> StorageError? { database.storageError(error) }

    /// Copies the database, as it is at one sequence, to a new file.
    func copy(to path: String) throws(StorageError) { try database.copy(to: path) }

    func close() throws {
        try headFile.sync()
        try database.close()
    }
}

/// A read of one snapshot of the database.
struct LibraryReader {
    /// The connection; only the types in Store and their tests use it.
    let database: SQLConnection
    /// The records that this read has decoded.
    let records: DecodedRecords

    init(database: SQLConnection) {
        self.database = database
        records = DecodedRecords(HistoryStore(database: database))
    }

    /// Called by long work between its statements; each statement calls it itself.
    ///
    /// - Throws: `CancellationError` if nobody waits for the read any more
    func checkCancellation() throws { try database.checkCancellation() }

    var fetches: FetchStore { FetchStore(database: database) }
    var collectionFetches: CollectionFetchStore { CollectionFetchStore(database: database) }
    var fetchKeys: FetchKeyStore { FetchKeyStore(database: database) }
    var history: HistoryStore { HistoryStore(database: database) }
    var assets: AssetStore { AssetStore(database: database) }
    /// Returns the reader of many assets.
    ///
    /// - Parameter projection: the members that are wanted
    func assetReader(_ projection: AssetProjection) -> AssetReader {
        AssetReader(database: database, projection: projection)
    }

    var imageDigests: ImageDigestStore { ImageDigestStore(database: database) }
    var metadata: MetadataStore { MetadataStore(database: database) }
    var collections: CollectionStore { CollectionStore(database: database) }
    var grants: GrantStore { GrantStore(database: database) }
    var edits: EditStore { EditStore(database: database) }
    var quarantine: QuarantineStore { QuarantineStore(database: database) }
    var remoteObjects: RemoteObjectStore { RemoteObjectStore(database: database) }
    var addedResources: AddedResourceStore { AddedResourceStore(database: database) }
    var uploadJobs: UploadJobStore { UploadJobStore(database: database) }
    var references: ReferencedDigestStore { ReferencedDigestStore(database: database) }

    func head() throws -> LibraryHead {
        guard let head = try history.head() else { throw DamagedRow("the database has no library row") }
        return head
    }

    func counter(_ name: String) throws -> Int { try CounterChanges.value(of: name, database) }

    /// Returns the usual counts of the library.
    func metrics() throws -> JSONObject {
        let head = try head()
        var counts = JSONObject()
        for name in ["assets", "visible", "visible.image", "visible.video", "visible.favorite", "hidden"] {
            counts[name] = JSON(try counter(name))
        }
        counts["library"] = .string(head.library)
        counts["oldest"] = .int(head.oldest)
        counts["historyBytes"] = JSON(try history.bytes())
        counts["editsAccepted"] = JSON(try edits.pending())
        counts["editsFinished"] = JSON(try edits.finished())
        return counts
    }
}
