import GRDB

extension Database {
    /// Runs a statement that changes rows; it is prepared once.
    func run(_ sql: String, _ arguments: StatementArguments) throws {
        let statement = try cachedStatement(sql: sql)
        statement.setUncheckedArguments(arguments)
        try statement.execute()
    }

    /// Runs work in a transaction that has the write lock from its begin, and commits it; rolls back on an error.
    ///
    /// The statements are prepared once. The library has no observers of transactions, which would not be told.
    func inImmediateTransaction(_ work: () throws -> Void) throws {
        func run(_ sql: String) throws {
            var statement = try SQLStatement(sql, self)
            try statement.run()
        }
        try run("BEGIN IMMEDIATE")
        do {
            try work()
            try run("COMMIT")
        } catch {
            // SQLite may have rolled back already, for example if the disk is full.
            if isInsideTransaction { try? run("ROLLBACK") }
            throw error
        }
    }
}
