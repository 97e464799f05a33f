import PostgreSQL
import Storage

/// Copies all tables of a library between a file of SQLite and PostgreSQL: records, outcomes and tokens stay the same.
struct LibraryMigration {
    /// A table with its columns and its primary key.
    struct Table: Equatable {
        let name: String
        let columns: [String]
        /// The columns of the primary key, in whose order rows are read.
        let key: [String]

        var list: String { columns.map { "\"\($0)\"" }.joined(separator: ", ") }
    }

    /// The number of rows between two progress reports.
    private static let reportInterval = 5000

    /// The tables that both databases have, in the order in which they refer to each other.
    static let names = [
        "library", "counter", "list", "collection", "asset", "departed", "resource", "keyword", "membership", "change",
        "change_topic", "outcome", "published_edit", "quarantine", "kept_adjustment", "metadata", "grants",
        "grant_asset", "remote_object", "remote_store", "image_digest", "upload_job", "upload_job_clock",
        "added_resource",
    ]
    /// The tables whose rows have numbers that are never used again, and their columns.
    private static let numbered = [("list", "row"), ("collection", "row"), ("asset", "row"), ("upload_job", "id")]

    /// The connection to the file.
    let file: SQLConnection
    /// The connection to PostgreSQL.
    let server: PostgreSQLSession
    /// Called with a table and the number of its rows that were copied so far.
    var progress: (_ table: String, _ rows: Int) -> Void = { _, _ in }

    /// Returns the tables, which both databases have.
    static func tables(_ file: SQLConnection) throws -> [Table] {
        try names.map { name in
            let columns = try file.all("SELECT name, pk FROM pragma_table_info('\(name)') ORDER BY cid") { row in
                (row.text(0), row.int(1))
            }
            let key = columns.filter { $0.1 > 0 }.sorted { $0.1 < $1.1 }.map(\.0)
            guard !key.isEmpty else { throw StorageError.invalid("the database has no table \(name)") }
            return Table(name: name, columns: columns.map(\.0), key: key)
        }
    }

    /// Returns the query of all rows of a table in the order of its key.
    private static func rows(of table: Table) -> SQLFragment {
        let key = table.key.map { "\"\($0)\"" }.joined(separator: ", ")
        return SQLFragment("SELECT \(table.list) FROM \(table.name) ORDER BY \(key)")
    }

    private static func values(_ row: SQLRow, of table: Table) -> [SQLValue] {
        table.columns.indices.map { row.value(Int32($0)) }
    }

    private func report(_ table: String, _ rows: Int) {
        if rows.isMultiple(of: Self.reportInterval) { progress(table, rows) }
    }

    // MARK: To PostgreSQL

    /// Copies the file to the server, whose tables must be empty.
    ///
    /// - Parameter verifies: true to compare all rows before the commit, so that the server has no library if the
    ///   comparison is interrupted
    /// - Returns: the number of rows
    func toServer(verifies: Bool = false) throws -> Int {
        let target = SQLConnection(server)
        var count = 0
        try target.inImmediateTransaction {
            if let existing = try HistoryStore(database: target).head() { throw try refusal(of: existing) }
            for table in try Self.tables(file) {
                try target.run(once: "ALTER TABLE \(table.name) DISABLE TRIGGER USER")
                try target.run(once: "DELETE FROM \(table.name)")
                count += try copy(table)
                try target.run(once: "ALTER TABLE \(table.name) ENABLE TRIGGER USER")
            }
            for (table, column) in Self.numbered {
                let used = try file.first("SELECT seq FROM sqlite_sequence WHERE name = '\(table)'") { $0.int64(0) }
                // A sequence begins at 1; the next number is the one after the last.
                try target.each(
                    "SELECT setval(pg_get_serial_sequence('\(table)', '\(column)'), ?, ?)",
                    max(1, used ?? 1),
                    used != nil
                ) { _ in }
            }
            if try file.first(SQLDialect.sqlite.uploadTrigger.exists, read: { $0.flag(0) }) == true {
                try target.run(once: SQLDialect.postgresql.uploadTrigger.create)
            }
            if verifies { try verify() }
        }
        return count
    }

    /// Returns the error for a server that already has a library, which may be this one: an earlier move may have been
    /// interrupted between its commit and the renaming of the file.
    private func refusal(of existing: LibraryHead) throws -> StorageError {
        guard try HistoryStore(database: file).head() == existing else {
            return .inUse("the database on PostgreSQL has a library already; name another schema or database")
        }
        try WriterElection.requireNotMoved(SQLConnection(server))
        return .inUse(
            "the database on PostgreSQL has this library with the same changes already: a move was interrupted at its "
                + "end. To complete it, rename library.sqlite to library.sqlite\(LibraryFolder.movedExtension) and start "
                + "the catalog with --store"
        )
    }

    private func copy(_ table: Table) throws -> Int {
        let rows = try SQLStatement(Self.rows(of: table), file)
        var total = 0
        return try server.connected().copyIn("COPY \(table.name) (\(table.list)) FROM STDIN (FORMAT binary)") {
            guard try rows.step() else { return nil }
            total += 1
            report(table.name, total)
            return Self.values(rows.currentRow, of: table).map(PostgreSQLValue.init)
        }
    }

    // MARK: To a file

    /// Copies the tables of the server into a new file. No catalog may write meanwhile.
    ///
    /// - Returns: the number of rows
    func toFile() throws -> Int {
        let source = SQLConnection(server)
        var count = 0
        try file.inImmediateTransaction {
            // A folder may have a smaller number than its parent.
            try file.run("PRAGMA defer_foreign_keys = ON")
            let triggers = try file.all("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'") {
                ($0.text(0), $0.text(1))
            }
            for (name, _) in triggers { try file.run(once: "DROP TRIGGER \(name)") }
            for table in try Self.tables(file) {
                try file.run(once: "DELETE FROM \(table.name)")
                let values = table.columns.map { _ in "?" }.joined(separator: ", ")
                var insertion = try SQLStatement("INSERT INTO \(table.name) (\(table.list)) VALUES (\(values))", file)
                var total = 0
                try source.stream(Self.rows(of: table)) { row in
                    for value in Self.values(row, of: table) { value.bind(to: &insertion) }
                    try insertion.run()
                    total += 1
                    report(table.name, total)
                }
                count += total
            }
            for (table, column) in Self.numbered {
                let sequence = try source.first("SELECT pg_get_serial_sequence('\(table)', '\(column)')") { $0.text(0) }
                guard let sequence else { continue }
                let used = try source.first(SQLFragment("SELECT last_value FROM \(sequence) WHERE is_called")) {
                    $0.int64(0)
                }
                try file.run("DELETE FROM sqlite_sequence WHERE name = ?", table)
                if let used { try file.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, used) }
            }
            for (_, sql) in triggers { try file.run(once: sql) }
            if try source.first(SQLDialect.postgresql.uploadTrigger.exists, read: { $0.flag(0) }) == true {
                try file.run(once: SQLDialect.sqlite.uploadTrigger.create)
            }
        }
        return count
    }

    // MARK: Comparing

    /// Returns the tables whose rows differ between the two; empty if all are equal.
    ///
    /// Both are read at the same time, row by row, so memory does not grow with the library.
    func differences() throws -> [String] {
        try Self.tables(file).filter { table in
            let fileRows = try SQLStatement(Self.rows(of: table), file)
            var isEqual = true
            var total = 0
            report("comparing \(table.name)", total)
            try SQLConnection(server).stream(Self.rows(of: table)) { serverRow in
                // Stopping would end the server's transaction.
                guard isEqual else { return }
                let hasRow = try fileRows.step()
                isEqual = hasRow && Self.values(fileRows.currentRow, of: table) == Self.values(serverRow, of: table)
                total += 1
                report("comparing \(table.name)", total)
            }
            guard isEqual else { return true }
            return try fileRows.step()
        }.map(\.name)
    }
}
