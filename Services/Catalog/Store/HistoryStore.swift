import JSONValue
import PhotoModel

/// The head of the library: its history, the newest sequence, and the sequence after which the history is complete.
struct LibraryHead: Sendable, Equatable {
    var library: String
    var sequence: Int64
    var oldest: Int64

    var token: ChangeToken { ChangeToken(library: library, sequence: sequence) }
    var oldestToken: ChangeToken { ChangeToken(library: library, sequence: oldest) }
}

/// A record that was read from the database: its bytes are not decoded. The newest records are also in memory, each as
/// a ``CommittedRecord``.
struct StoredRecord: Sendable, Equatable {
    let sequence: Int64
    let bytes: [UInt8]
}

/// Consecutive records, oldest first.
struct RecordPage: Sendable {
    var records: [StoredRecord] = []
    /// True if there may be more records: the page ended at a limit, not at the end of the history.
    var isCut = false
}

/// Reads and writes the change log and the outcomes, within one transaction.
struct HistoryStore {
    let database: SQLConnection

    // MARK: Head

    /// The newest sequence, as an expression in a statement `FROM library`: that of the newest record. `library.head`
    /// is written only when a history begins or records are deleted, because there may then be no record; a commit does
    /// not write that row.
    static let newestSequence = "max(head, coalesce((SELECT max(sequence) FROM change), 0))"

    /// The query of the newest sequence alone.
    static let newestSequenceQuery = "SELECT \(newestSequence) FROM library"

    private static let headSelection = "SELECT history, \(newestSequence), oldest FROM library"

    func head() throws -> LibraryHead? {
        let statement = try SQLStatement(Self.headSelection, database)
        guard try statement.step() else { return nil }
        let row = statement.currentRow
        return LibraryHead(library: row.text(0), sequence: row.int64(1), oldest: row.int64(2))
    }

    /// Creates the library row, the root folder and the smart albums in a new database.
    func createLibrary(history library: String, sequence: Int64, date: Int64) throws {
        try database.run("INSERT INTO library VALUES (1, ?, ?, ?, ?)", library, date, sequence, sequence)
        var root = CollectionList(id: .root)
        root.subtype = .rootFolder
        root.creationDate = date
        root.modificationDate = date
        try CollectionStore(database: database).save([EntityChange(before: nil, after: root)])
        try CollectionStore(database: database).createMissingSmartAlbums(date: date)
        try DerivedBackfillStore(database: database).recordRules()
    }

    /// Begins a new history of the same library: tokens of the old history become invalid.
    func startNewHistory(library: String, sequence: Int64) throws {
        try database.run("UPDATE library SET history = ?, head = ?, oldest = ?", library, sequence, sequence)
    }

    // MARK: Records

    func append(_ record: ChangeRecord, bytes: [UInt8], _ counters: inout CounterChanges) throws {
        var statement = try SQLStatement(Self.recordInsertion, database)
        statement.bind(record.sequence)
        statement.bind(record.date)
        statement.bind(record.library)
        statement.bind(bytes.count)
        try statement.run(binding: bytes)
        var topics = try SQLStatement("INSERT OR IGNORE INTO change_topic VALUES (?, ?)", database)
        for topic in record.topics {
            topics.bind(topic)
            topics.bind(record.sequence)
            try topics.run()
        }
        if record.changesResources { try KeptAdjustmentStore(database: database).keep(record) }
        counters.add(bytes.count, to: Self.bytesCounter)
    }

    private static let recordInsertion =
        "INSERT INTO change (sequence, date, library, size, record) VALUES (?, ?, ?, ?, ?)"

    /// Returns records after a sequence, oldest first, up to `count` records or `bytes` bytes; at least one if there is
    /// any.
    func records(after sequence: Int64, through last: Int64, count: Int, bytes: Int) throws -> RecordPage {
        try page("c.sequence > ? AND c.sequence <= ?", through: last, count: count, bytes: bytes) { rows, last in
            rows.bind(sequence)
            rows.bind(last)
        }
    }

    /// Returns records like ``records(after:through:count:bytes:)``, but only those that belong to one of some topics.
    func records(
        after sequence: Int64,
        through last: Int64,
        topics: [String],
        count: Int,
        bytes: Int
    ) throws -> RecordPage {
        let condition = """
            c.sequence IN (
                SELECT t.sequence FROM json_each(?) e JOIN change_topic t ON t.topic = e.value
                WHERE t.sequence > ? AND t.sequence <= ?)
            """
        let list = jsonList(topics)
        return try page(condition, through: last, count: count, bytes: bytes) { rows, last in
            rows.bind(list)
            rows.bind(sequence)
            rows.bind(last)
        }
    }

    /// Returns the records that satisfy a condition on the table `c`.
    ///
    /// - Parameter bind: binds the values of the condition; its argument is the sequence of the last record
    private func page(
        _ condition: String,
        through last: Int64,
        count: Int,
        bytes: Int,
        bind: (inout SQLStatement, Int64) -> Void
    ) throws -> RecordPage {
        var page = RecordPage()
        guard let end = try pageEnd(condition, through: last, count: count, bytes: bytes, bind) else { return page }
        var rows = try SQLStatement(
            "SELECT c.sequence, c.record FROM change c WHERE \(condition) ORDER BY c.sequence",
            database
        )
        bind(&rows, end.sequence)
        while try rows.step() {
            page.records.append(StoredRecord(sequence: rows.currentRow.int64(0), bytes: rows.currentRow.bytes(1)))
        }
        page.isCut = end.isCut
        return page
    }

    /// Returns the sequence of the last record of a page. Only the sizes of the records are read, because PostgreSQL
    /// sends all rows of a statement, even those that do not fit into the page.
    private func pageEnd(
        _ condition: String,
        through last: Int64,
        count: Int,
        bytes: Int,
        _ bind: (inout SQLStatement, Int64) -> Void
    ) throws -> (sequence: Int64, isCut: Bool)? {
        var sizes = try SQLStatement(
            "SELECT c.sequence, c.size FROM change c WHERE \(condition) ORDER BY c.sequence LIMIT ?",
            database
        )
        bind(&sizes, last)
        sizes.bind(count)
        var end: Int64?
        var (found, total) = (0, 0)
        while try sizes.step() {
            total += sizes.currentRow.int(1)
            if let end, total > bytes { return (sequence: end, isCut: true) }
            end = sizes.currentRow.int64(0)
            found += 1
        }
        return end.map { (sequence: $0, isCut: found == count) }
    }

    /// Returns the bytes of the records between two sequences; nil if they exceed `limit`.
    func size(after sequence: Int64, through last: Int64, upTo limit: Int) throws -> Int? {
        var sizes = try SQLStatement(
            "SELECT size FROM change WHERE sequence > ? AND sequence <= ? ORDER BY sequence",
            database
        )
        sizes.bind(sequence)
        sizes.bind(last)
        var total = 0
        while try sizes.step() {
            total += sizes.currentRow.int(0)
            if total > limit { return nil }
        }
        return total
    }

    /// Returns the sequence of the first record after another sequence that belongs to a topic; nil if there is none.
    func firstSequence(of topic: String, after sequence: Int64, through last: Int64) throws -> Int64? {
        try database.first(
            """
            SELECT sequence FROM change_topic WHERE topic = ? AND sequence > ? AND sequence <= ?
            ORDER BY sequence LIMIT 1
            """,
            topic,
            sequence,
            last
        ) { $0.int64(0) }
    }

    func record(_ sequence: Int64) throws -> [UInt8]? {
        try database.first("SELECT record FROM change WHERE sequence = ?", sequence) { $0.bytes(0) }
    }

    // MARK: Outcomes

    private static let outcomeSelection =
        #"SELECT digest, reply FROM outcome WHERE identity = ? AND client = ? AND "transaction" = ?"#

    func outcome(_ key: OutcomeKey) throws -> StoredOutcome? {
        var statement = try SQLStatement(Self.outcomeSelection, database)
        statement.bind(key.identity)
        statement.bind(key.client)
        statement.bind(key.transaction)
        guard try statement.step() else { return nil }
        return StoredOutcome(digest: statement.currentRow.bytes(0), reply: statement.currentRow.bytes(1))
    }

    /// Stores the outcome of a transaction.
    ///
    /// - Parameter record: the sequence of the transaction's record, with which the outcome is deleted; 0 without one
    func remember(_ outcome: StoredOutcome, for key: OutcomeKey, record: Int64, date: Int64) throws {
        var statement = try SQLStatement("INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?)", database)
        statement.bind(key.identity)
        statement.bind(key.client)
        statement.bind(key.transaction)
        statement.bind(outcome.digest)
        statement.bind(outcome.reply)
        statement.bind(record)
        statement.bind(date)
        try statement.run()
    }

    /// Deletes the outcomes of records that are deleted. A record that is not older than `date` is deleted only because
    /// all records together are too large, and its outcome is kept until it is older.
    private func deleteOutcomes(
        of records: [(sequence: Int64, date: Int64, origin: ChangeOrigin)],
        before date: Int64
    ) throws {
        let key = #"identity = ? AND client = ? AND "transaction" = ? AND sequence = ?"#
        for (sequence, recordDate, origin) in records {
            guard let transaction = origin.transaction else { continue }
            let identity = origin.onBehalfOf ?? origin.identity
            let change = recordDate < date ? "DELETE FROM outcome" : "UPDATE outcome SET sequence = 0"
            try database.run("\(change) WHERE \(key)", identity, origin.client ?? "", transaction, sequence)
        }
    }

    // MARK: Retention

    private static let bytesCounter = "history.bytes"

    /// Returns the total bytes of all records.
    func bytes() throws -> Int { try CounterChanges.value(of: Self.bytesCounter, database) }

    /// Deletes a few of the oldest records, if they are older than `date` or the total exceeds `limit` bytes, and a few
    /// of the outcomes without a record that are older than `date`.
    ///
    /// - Returns: true if there may be more to delete
    func trim(before date: Int64, bytes limit: Int, records: Int, recordBytes: Int) throws -> Bool {
        let deletedOutcomes = try database.runCounting(
            """
            DELETE FROM outcome WHERE (identity, client, "transaction") IN (
                SELECT identity, client, "transaction" FROM outcome WHERE sequence = 0 AND date < ?
                ORDER BY date LIMIT ?)
            """,
            date,
            records
        )
        var excess = try bytes() - limit
        var rows = try SQLStatement(
            "SELECT sequence, date, size FROM change ORDER BY sequence LIMIT ?",
            database
        )
        rows.bind(records)
        var last: Int64?
        var removed = 0
        var count = 0
        var topics: [(String, Int64)] = []
        var origins: [(sequence: Int64, date: Int64, origin: ChangeOrigin)] = []
        while try rows.step() {
            let row = rows.currentRow
            let size = row.int(2)
            guard row.int64(1) < date || excess > 0, removed == 0 || removed + size <= recordBytes else { break }
            let sequence = row.int64(0)
            // Records are read one by one, because most of the selected ones are usually not deleted yet.
            guard let text = try self.record(sequence) else { break }
            let record = try ChangeRecord(json: JSON(parsing: text))
            topics += record.topics.map { ($0, sequence) }
            origins.append((sequence, row.int64(1), record.origin))
            (last, removed, count, excess) = (sequence, removed + size, count + 1, excess - size)
        }
        rows.reset()
        guard let last else { return deletedOutcomes == records }
        for (topic, sequence) in topics {
            try database.run("DELETE FROM change_topic WHERE topic = ? AND sequence = ?", topic, sequence)
        }
        try deleteOutcomes(of: origins, before: date)
        try database.run("DELETE FROM change WHERE sequence <= ?", last)
        try database.run("DELETE FROM departed WHERE sequence <= ?", last)
        try KeptAdjustmentStore(database: database).trim(through: last)
        // Records of an earlier history have sequences below `oldest` already. The newest record may be among them.
        try database.run("UPDATE library SET oldest = max(oldest, ?), head = max(head, ?)", last, last)
        try CounterChanges.add(-removed, to: Self.bytesCounter, database)
        return true
    }
}

extension ChangeRecord {
    /// True if an asset has other resources than before.
    fileprivate var changesResources: Bool {
        assets.indices.contains { index in
            guard let before = assets[index].before?.resources, let after = assets[index].after?.resources else {
                return false
            }
            return before != after
        }
    }
}
