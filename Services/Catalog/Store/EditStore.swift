import JSONValue
import PhotoModel

/// Reads and writes published edits, within one transaction.
struct EditStore {
    let database: SQLConnection

    private static let columns = """
        publisher, id, asset, state, predecessor, digest, content, error_name, error_message, accepted, sequence, date
        """
    private static let pendingCounter = "edits.pending"
    private static let finishedCounter = "edits.finished"

    func edit(_ id: String, of publisher: String) throws -> StoredEdit? {
        try database.first(
            "SELECT \(Self.columns) FROM published_edit WHERE publisher = ? AND id = ?",
            publisher,
            id
        ) { try StoredEdit.init($0) }
    }

    /// Returns the number of edits that are accepted and not finished.
    func pending() throws -> Int { try CounterChanges.value(of: Self.pendingCounter, database) }

    /// Returns the number of finished edits that are kept.
    func finished() throws -> Int { try CounterChanges.value(of: Self.finishedCounter, database) }

    /// Returns unfinished edits accepted after a sequence, oldest first, up to `bytes` of content; at least one if
    /// there is any.
    ///
    /// - Returns: the edits, and whether there may be more
    func pending(after sequence: Int64, limit: Int, bytes: Int) throws -> (edits: [StoredEdit], isCut: Bool) {
        var rows = try SQLStatement(
            """
            SELECT \(Self.columns) FROM published_edit WHERE state = 'accepted' AND accepted > ?
            ORDER BY accepted LIMIT ?
            """,
            database
        )
        rows.bind(sequence)
        rows.bind(limit)
        var edits: [StoredEdit] = []
        var total = 0
        while try rows.step() {
            let edit = try StoredEdit(rows.currentRow)
            if !edits.isEmpty, total + edit.content.count > bytes { return (edits, true) }
            total += edit.content.count
            edits.append(edit)
        }
        return (edits, edits.count == limit)
    }

    func save(_ edits: [StoredEdit]) throws {
        for edit in edits {
            let before = try self.edit(edit.id, of: edit.publisher)
            try count(before, by: -1)
            try count(edit, by: 1)
            try database.run(
                """
                INSERT INTO published_edit (\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (publisher, id) DO UPDATE SET asset = excluded.asset, state = excluded.state,
                    predecessor = excluded.predecessor, digest = excluded.digest, content = excluded.content,
                    error_name = excluded.error_name, error_message = excluded.error_message,
                    accepted = excluded.accepted, sequence = excluded.sequence, date = excluded.date
                """,
                edit.publisher,
                edit.id,
                edit.asset.text,
                edit.state.rawValue,
                edit.predecessor,
                edit.digest,
                edit.content,
                edit.errorName,
                edit.errorMessage,
                edit.accepted,
                edit.sequence,
                edit.date
            )
        }
    }

    /// Deletes finished edits that ended before `date` or exceed the newest `keep`; at most `count` of them.
    ///
    /// - Returns: true if there may be more to delete
    func trim(before date: Int64, keep: Int, count: Int) throws -> Bool {
        let excess = min(count, max(0, try finished() - keep))
        var deleted: [(String, String)] = []
        try database.each(
            "SELECT publisher, id, date FROM published_edit WHERE state <> 'accepted' ORDER BY date LIMIT ?",
            count
        ) { row in
            if row.int64(2) < date || deleted.count < excess { deleted.append((row[0], row[1])) }
        }
        for (publisher, id) in deleted {
            try database.run("DELETE FROM published_edit WHERE publisher = ? AND id = ?", publisher, id)
        }
        if !deleted.isEmpty { try CounterChanges.add(-deleted.count, to: Self.finishedCounter, database) }
        return deleted.count == count
    }

    private func count(_ edit: StoredEdit?, by step: Int) throws {
        guard let edit else { return }
        let counter = edit.state == .accepted ? Self.pendingCounter : Self.finishedCounter
        try CounterChanges.add(step, to: counter, database)
    }
}

// MARK: - Stored edits

/// A published edit as the catalog stores it.
///
/// Publishers do not see each other: an edit is identified by its publisher's identity and the publisher's own id for
/// it. Topics of the feed contain only the id; the publisher is the record's `onBehalfOf`.
struct StoredEdit: Sendable, Equatable {
    var publisher: String
    var id: String
    var asset: ObjectID
    var state: PublishedEditState
    var predecessor: String?
    var digest: String
    /// The published content; empty once the edit is finished.
    var content: [UInt8]
    var errorName: String?
    var errorMessage: String?
    /// The sequence of the transaction that accepted the edit, or that ended it if it was never accepted.
    var accepted: Int64
    /// The sequence of the transaction that set the current state, and its time in microseconds since 1970.
    var sequence: Int64
    var date: Int64

    /// The form that records and replies contain.
    var published: PublishedEdit {
        PublishedEdit(
            id: id,
            asset: asset,
            state: state,
            predecessor: predecessor,
            errorName: errorName,
            errorMessage: errorMessage
        )
    }
}

extension StoredEdit {
    fileprivate init(_ row: SQLRow) throws {
        guard let asset = ObjectID(row[2] as String), let state = PublishedEditState(rawValue: row[3]) else {
            throw DamagedRow("a published edit has the asset \(row[2] as String) and the state \(row[3] as String)")
        }
        self.init(
            publisher: row[0],
            id: row[1],
            asset: asset,
            state: state,
            predecessor: row[4],
            digest: row[5],
            content: row[6],
            errorName: row[7],
            errorMessage: row[8],
            accepted: row[9],
            sequence: row[10],
            date: row[11]
        )
    }

    func parsedContent() throws -> JSON { try JSON(parsing: content) }
}
