import GRDB

/// A connection to the library's database, within one access of it; what stores speak to.
struct SQLConnection {
    /// The connection of SQLite, for the few files that are about SQLite itself.
    let sqlite: Database

    init(_ sqlite: Database) { self.sqlite = sqlite }

    // MARK: Writing

    /// Runs a statement that changes rows; it is prepared once.
    func run<each Value: SQLBindable>(_ sql: String, _ values: repeat each Value) throws {
        var statement = try SQLStatement(sql, self)
        repeat (each values).bind(to: &statement)
        try statement.run()
    }

    /// Runs a statement and returns the number of rows that it changed.
    func runCounting<each Value: SQLBindable>(_ sql: String, _ values: repeat each Value) throws -> Int {
        var statement = try SQLStatement(sql, self)
        repeat (each values).bind(to: &statement)
        return try statement.runCounting()
    }

    /// Runs several statements without values, which are not kept.
    func run(script: String) throws { try sqlite.execute(sql: script) }

    // MARK: Reading

    /// Calls a closure with each row.
    func each<each Value: SQLBindable>(
        _ sql: String,
        _ values: repeat each Value,
        visit: (StatementColumns) throws -> Void
    ) throws {
        var statement = try SQLStatement(sql, self)
        repeat (each values).bind(to: &statement)
        while try statement.step() { try visit(statement.columns) }
    }

    /// Returns the first row, or nil if there is none.
    func first<each Value: SQLBindable, Result>(
        _ sql: String,
        _ values: repeat each Value,
        read: (StatementColumns) throws -> Result
    ) throws -> Result? {
        var statement = try SQLStatement(sql, self)
        repeat (each values).bind(to: &statement)
        return try statement.step() ? try read(statement.columns) : nil
    }

    /// Returns all rows.
    func all<each Value: SQLBindable, Result>(
        _ sql: String,
        _ values: repeat each Value,
        read: (StatementColumns) throws -> Result
    ) throws -> [Result] {
        var statement = try SQLStatement(sql, self)
        repeat (each values).bind(to: &statement)
        var results: [Result] = []
        while try statement.step() { results.append(try read(statement.columns)) }
        return results
    }

    // Statements that are composed for one use are not kept: there is no end of different ones.

    /// Calls a closure with each row of a composed query.
    func each(_ query: SQLFragment, visit: (StatementColumns) throws -> Void) throws {
        let statement = try SQLStatement(query, self)
        while try statement.step() { try visit(statement.columns) }
    }

    /// Returns the first row of a composed query, or nil if there is none.
    func first<Result>(_ query: SQLFragment, read: (StatementColumns) throws -> Result) throws -> Result? {
        let statement = try SQLStatement(query, self)
        return try statement.step() ? try read(statement.columns) : nil
    }

    /// Returns all rows of a composed query.
    func all<Result>(_ query: SQLFragment, read: (StatementColumns) throws -> Result) throws -> [Result] {
        let statement = try SQLStatement(query, self)
        var results: [Result] = []
        while try statement.step() { results.append(try read(statement.columns)) }
        return results
    }

    // MARK: Transactions

    /// Runs work in a transaction that has the write lock from its begin, and commits it; rolls back on an error.
    ///
    /// The statements are prepared once. The library has no observers of transactions, which would not be told.
    func inImmediateTransaction(_ work: () throws -> Void) throws {
        try run("BEGIN IMMEDIATE")
        do {
            try work()
            try run("COMMIT")
        } catch {
            // SQLite may have rolled back already, for example if the disk is full.
            if sqlite.isInsideTransaction { try? run("ROLLBACK") }
            throw error
        }
    }

    /// Runs work in a savepoint of the transaction, and rolls back to it on an error.
    func inSavepoint(_ work: () throws -> Void) throws {
        try run("SAVEPOINT request")
        do {
            try work()
            try run("RELEASE request")
        } catch {
            // SQLite may have rolled back the whole transaction already, for example if the disk is full.
            if sqlite.isInsideTransaction {
                try run("ROLLBACK TO request")
                try run("RELEASE request")
            }
            throw error
        }
    }
}
