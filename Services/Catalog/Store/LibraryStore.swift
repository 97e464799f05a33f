import Contracts
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
    /// The file that belongs to the library and always exists: the database, or else the head file.
    let path: String
    /// The identifier of the library's history since this start.
    let historyID: String
    /// The newest sequence at this start.
    let startSequence: Int64
    /// The newest sequence that this catalog has acknowledged before this start, or that the database had then.
    let acknowledgedSequence: Int64
    /// Serializes every write that is not part of a group of transactions.
    private let writes = WriteSerializer()
    /// Limits the reads to the number of reading connections, and those of one client to one less.
    private let readPermits: FairSemaphore<WorkSource>
    private let remoteResources: RemoteResources

    /// The local files of a library with remote storage; the value is nil if the library has none, and all bytes are
    /// local.
    final class RemoteResources: Sendable {
        private let store = Mutex<ResourceStore?>(nil)

        var value: ResourceStore? {
            get { store.withLock { $0 } }
            set { store.withLock { $0 = newValue } }
        }
    }

    /// Makes fetches check which resources have local files.
    func useLocalFiles(of resources: ResourceStore) { remoteResources.value = resources }

    /// Opens or creates the library in a folder whose lock the caller holds; see ``LibraryOpening``.
    ///
    /// - Parameters:
    ///   - server: the address of the database on PostgreSQL; nil for a file in the folder
    ///   - replica: the address of a replica for reads; nil to read at `server`
    ///   - now: microseconds since 1970, the date of a new library
    ///   - newHistoryID: 32 hexadecimal digits that were never used before
    init(
        folder: String,
        server: String? = nil,
        replica: String? = nil,
        options: Options = Options(),
        now: Int64,
        newHistoryID: String,
        logger: Logger
    ) throws {
        remoteResources = RemoteResources()
        let library = try LibraryOpening(
            folder: folder,
            server: server,
            replica: replica,
            options: options,
            remoteResources: remoteResources,
            now: now,
            newHistoryID: newHistoryID,
            logger: logger
        )
        readPermits = FairSemaphore(permits: options.readers, permitsPerSource: max(1, options.readers - 1))
        database = library.database
        headFile = library.headFile
        path = library.path
        historyID = library.head.library
        startSequence = library.head.sequence
        acknowledgedSequence = library.acknowledgedSequence
        self.folder = folder
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
    func changeUploadStates<Value: Sendable>(
        _ change: @escaping @Sendable (UploadStateStore) throws -> Value
    ) async throws -> Value {
        try await write { try change(UploadStateStore(database: $0)) }
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
            let stored = try reader.counter(RetentionClock.counter)
            if stored > 0 { return Int64(stored) }
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

    /// Reads and writes a small value in the database, and a small file where resources are stored.
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

    /// The role of this catalog, and the epoch of the current writer if there may be several catalogs.
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

    /// Throws if the task that waits for the read was cancelled. Long work calls it between statements; each statement
    /// calls it itself.
    ///
    /// - Throws: `CancellationError`
    func checkCancellation() throws { try database.checkCancellation() }

    var fetches: FetchStore { FetchStore(database: database) }
    var collectionFetches: CollectionFetchStore { CollectionFetchStore(database: database) }
    var fetchKeys: FetchKeyStore { FetchKeyStore(database: database) }
    var history: HistoryStore { HistoryStore(database: database) }
    var assets: AssetStore { AssetStore(database: database) }
    /// Returns the reader of many assets.
    ///
    /// - Parameter projection: the members to read
    func assetReader(_ projection: AssetProjection) -> AssetReader {
        AssetReader(database: database, projection: projection)
    }

    var imageDigests: ImageDigestStore { ImageDigestStore(database: database) }
    var metadata: MetadataStore { MetadataStore(database: database) }
    var collections: CollectionStore { CollectionStore(database: database) }
    var grants: GrantStore { GrantStore(database: database) }
    var edits: EditStore { EditStore(database: database) }
    var quarantine: QuarantineStore { QuarantineStore(database: database) }
    var uploadStates: UploadStateStore { UploadStateStore(database: database) }
    var addedResources: AddedResourceStore { AddedResourceStore(database: database) }
    var uploadJobs: UploadJobStore { UploadJobStore(database: database) }
    var references: ReferencedDigestStore { ReferencedDigestStore(database: database) }

    func head() throws -> LibraryHead {
        guard let head = try history.head() else { throw DamagedRow("the database has no library row") }
        return head
    }

    func counter(_ name: String) throws -> Int { try CounterChanges.value(of: name, database) }

    /// Returns the counts of the library for the method `figures`.
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
