import GRDB
import Glibc
import Logging
import PhotoModel
import Storage

/// The library's database and the file beside it that remembers how far the library has come.
final class LibraryStore: Sendable {
    let database: DatabaseFile
    let headFile: HeadFile
    /// The history that the library has since this start.
    let history: String
    /// The newest sequence at this start.
    let startSequence: Int64

    /// Opens or makes the library in a folder whose lock the caller holds.
    ///
    /// A database that has not come as far as the head file remembers is an old copy put back: it gets a new history,
    /// which goes on above the highest number ever given, so that no revision is given twice.
    ///
    /// - Parameters:
    ///   - now: microseconds since 1970, the date of a new library
    ///   - newHistory: 32 hexadecimal digits, never given before
    init(
        folder: String,
        options: DatabaseFile.Options = DatabaseFile.Options(),
        now: Int64,
        newHistory: String,
        logger: Logger
    ) throws {
        var options = options
        options.prepare = { database in
            database.add(function: FetchFunctions.match)
            database.add(function: FetchFunctions.distance)
        }
        let file = try DatabaseFile(
            path: "\(folder)/library.sqlite",
            migrator: CatalogSchema.migrator,
            options: options
        )
        let headFile = try HeadFile(path: "\(folder)/head")
        let remembered = try headFile.load()
        let head = try file.pool.write { database -> LibraryHead in
            let store = HistoryStore(database: database)
            let highest = remembered?.sequence ?? 0
            if let head = try store.head() {
                let backfill = DerivedBackfillStore(database: database)
                if try backfill.isNeeded() {
                    try backfill.run(date: now, sequence: head.sequence)
                    try store.beginAnew(library: newHistory, sequence: max(highest, head.sequence))
                    return LibraryHead(library: newHistory, sequence: highest, oldest: highest)
                }
                guard let remembered, remembered.library != head.library || remembered.sequence > head.sequence else {
                    return head
                }
                try store.beginAnew(library: newHistory, sequence: max(highest, head.sequence))
            } else {
                try store.begin(library: newHistory, sequence: highest, date: now)
            }
            return LibraryHead(library: newHistory, sequence: highest, oldest: highest)
        }
        if head.library == newHistory, let remembered {
            logger.warning(
                "the database is older than the library was, or of an earlier version: it begins a new history",
                metadata: [
                    "library.old": "\(remembered.library)", "library.new": "\(newHistory)",
                    "sequence": "\(remembered.sequence)",
                ]
            )
        }
        let current = try file.pool.read { try HistoryStore(database: $0).head() ?? head }
        try headFile.store(library: current.library, sequence: current.sequence)
        self.database = file
        self.headFile = headFile
        self.history = current.library
        self.startSequence = current.sequence
    }

    /// Reads from one unchanging state of the database.
    func read<Value: Sendable>(_ value: @escaping @Sendable (LibraryReader) throws -> Value) async throws -> Value {
        try await database.read { try value(LibraryReader(database: $0)) }
    }

    /// Writes a whole transaction that was made up, without rules.
    func append(_ batch: LibraryGenerator.Batch) async throws {
        try await database.write { database in
            var counters = CounterChanges()
            try DatabaseLibrary(database).save(batch.result, sequence: batch.record.sequence, &counters)
            let history = HistoryStore(database: database)
            try history.append(batch.record, bytes: batch.bytes, &counters)
            try counters.save(database)
            try history.setHead(batch.record.sequence)
        }
    }

    /// Writes what stored bytes did to workers; no transaction of the history.
    func changeQuarantine<Value: Sendable>(
        _ change: @escaping @Sendable (QuarantineStore) throws -> Value
    ) async throws -> Value {
        try await database.write { try change(QuarantineStore(database: $0)) }
    }

    /// Keeps a number that is no part of the history.
    func remember(_ value: Int64, as counter: String) async throws {
        try await database.write { try CounterChanges.set(value, as: counter, $0) }
    }

    /// Makes the store of one commit.
    typealias Batches = (BatchStore.WriteRules) -> BatchStore

    /// Does something on the thread of the connection that writes.
    func onWriter(_ work: @escaping @Sendable (Batches) -> Void) {
        database.pool.asyncWriteWithoutTransaction { database in
            work { BatchStore(database: database, rules: $0) }
        }
    }

    /// Bytes of the write-ahead log.
    var walBytes: Int64 {
        var status = stat()
        return stat(database.path + "-wal", &status) == 0 ? Int64(status.st_size) : 0
    }

    func close() throws {
        try headFile.sync()
        try database.close()
    }
}

/// One unchanging state of the database.
struct LibraryReader {
    let database: Database

    var history: HistoryStore { HistoryStore(database: database) }
    var assets: AssetStore { AssetStore(database: database) }
    var collections: CollectionStore { CollectionStore(database: database) }
    var edits: EditStore { EditStore(database: database) }
    var quarantine: QuarantineStore { QuarantineStore(database: database) }

    func head() throws -> LibraryHead {
        guard let head = try history.head() else { throw DamagedRow("the database has no library row") }
        return head
    }

    func counter(_ name: String) throws -> Int { try CounterChanges.value(of: name, database) }
}
