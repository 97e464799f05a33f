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
    /// Every write that is no group of transactions takes its turn here.
    private let writes = WriteTurns()

    /// Opens or makes the library in a folder whose lock the caller holds.
    ///
    /// A database that has not come as far as the head file remembers, and files that are not those that the head file
    /// was written for, are a copy that was put back or moved: the library gets a new history, which goes on above the
    /// numbers given before, so that no revision is given twice.
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
        let remembering = try HeadFile(path: "\(folder)/head", database: file.path)
        let remembered = try remembering.load()
        let origin = try remembering.origin()
        let (head, reason) = try file.pool.write { database in
            try Self.begin(HistoryStore(database: database), remembered, origin, newHistory: newHistory, now: now)
        }
        if let reason {
            logger.warning(
                "the library begins a new history; clients that follow it fetch again",
                metadata: [
                    "reason": "\(reason.rawValue)", "library.old": "\(remembered?.library ?? "unknown")",
                    "library.new": "\(head.library)", "sequence": "\(head.sequence)",
                ]
            )
        }
        let headFile = try remembering.renew(library: head.library, sequence: head.sequence)
        self.database = file
        self.headFile = headFile
        self.history = head.library
        self.startSequence = head.sequence
    }

    /// Why a library begins a new history.
    private enum NewHistory: String {
        case olderDatabase = "the database is older than the library was: a copy of it was put back"
        case otherDatabase = "the database is another file: the folder was moved to another disk, copied or put back"
        case otherHead = "the head file is another one: the folder was moved to another disk, copied or put back"
        case noHead = "the head file is gone"
        case backfill = "the database is of an earlier version, without moments"
    }

    /// Finds out whether the database goes on with its history, and begins a new one where it does not.
    ///
    /// A copy of the folder does not know what the library did after the copy was made, so that sequences are left out:
    /// no revision is given twice.
    private static func begin(
        _ store: HistoryStore,
        _ remembered: HeadFile.Head?,
        _ origin: HeadFile.Origin,
        newHistory: String,
        now: Int64
    ) throws -> (head: LibraryHead, reason: NewHistory?) {
        let highest = remembered?.sequence ?? 0
        guard let head = try store.head() else {
            try store.begin(library: newHistory, sequence: highest, date: now)
            let head = LibraryHead(library: newHistory, sequence: highest, oldest: highest)
            return (head, remembered == nil ? nil : .olderDatabase)
        }
        var sequence = max(highest, head.sequence)
        let backfill = DerivedBackfillStore(database: store.database)
        let reason: NewHistory
        if try backfill.isNeeded() {
            try backfill.run(date: now, sequence: head.sequence)
            reason = .backfill
        } else if origin == .otherDatabase || origin == .otherHead {
            reason = origin == .otherDatabase ? .otherDatabase : .otherHead
        } else if let remembered {
            guard remembered.library != head.library || remembered.sequence > head.sequence else { return (head, nil) }
            reason = .olderDatabase
        } else {
            reason = .noHead
        }
        if origin == .otherDatabase || origin == .otherHead || reason == .noHead { sequence += LibraryRestore.gap }
        try store.beginAnew(library: newHistory, sequence: sequence)
        return (LibraryHead(library: newHistory, sequence: sequence, oldest: sequence), reason)
    }

    /// Reads from one unchanging state of the database.
    func read<Value: Sendable>(_ value: @escaping @Sendable (LibraryReader) throws -> Value) async throws -> Value {
        try await database.read { try value(LibraryReader(database: $0)) }
    }

    /// Writes a whole transaction that was made up, without rules.
    func append(_ batch: LibraryGenerator.Batch) async throws {
        try await write { database in
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
        try await write { try change(QuarantineStore(database: $0)) }
    }

    private func write<Value: Sendable>(_ updates: @escaping @Sendable (Database) throws -> Value) async throws -> Value
    {
        try await writes.run { try await database.write(updates) }
    }

    /// The moment by which things were forgotten last; in a library that has none yet, the newest that it knows of.
    func retentionMoment() async throws -> Int64 {
        try await read { reader in
            let kept = try reader.counter(RetentionTime.counter)
            if kept > 0 { return Int64(kept) }
            let sql = """
                SELECT coalesce((SELECT date FROM change ORDER BY sequence DESC LIMIT 1), (SELECT created FROM library))
                """
            return try Int64.fetchOne(reader.database, sql: sql) ?? 0
        }
    }

    /// Keeps a number that is no part of the history.
    func remember(_ value: Int64, as counter: String) async throws {
        try await write { try CounterChanges.set(value, as: counter, $0) }
    }

    /// Makes the store of one commit.
    typealias Batches = (BatchStore.WriteRules) -> BatchStore

    /// Does something on the thread of the connection that writes, behind what is waiting for it.
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
    var references: ReferencedDigestStore { ReferencedDigestStore(database: database) }

    func head() throws -> LibraryHead {
        guard let head = try history.head() else { throw DamagedRow("the database has no library row") }
        return head
    }

    func counter(_ name: String) throws -> Int { try CounterChanges.value(of: name, database) }
}
