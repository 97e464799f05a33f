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
        var forgotten: [(String, String)] = []
        try database.each(
            "SELECT publisher, id, date FROM published_edit WHERE state <> 'accepted' ORDER BY date LIMIT ?",
            count
        ) { row in
            if row.int64(2) < date || forgotten.count < excess { forgotten.append((row[0], row[1])) }
        }
        for (publisher, id) in forgotten {
            try database.run("DELETE FROM published_edit WHERE publisher = ? AND id = ?", publisher, id)
        }
        if !forgotten.isEmpty { try CounterChanges.add(-forgotten.count, to: Self.finishedCounter, database) }
        return forgotten.count == count
    }

    private func count(_ edit: StoredEdit?, by step: Int) throws {
        guard let edit else { return }
        let counter = edit.state == .accepted ? Self.pendingCounter : Self.finishedCounter
        try CounterChanges.add(step, to: counter, database)
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
