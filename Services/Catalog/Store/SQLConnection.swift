import GRDB
import PostgreSQL
import Synchronization

/// A connection to the library's database, which stores use within one transaction or read.
///
/// Statements are written for SQLite; ``PostgreSQLDialect`` translates them.
struct SQLConnection {
    enum Engine {
        case sqlite(Database)
        case postgresql(PostgreSQLSession)
    }

    let engine: Engine
    /// Stops a read whose task was cancelled; nil for a write, which is carried out in any case.
    var cancellation: ReadCancellation?

    init(_ sqlite: Database) { engine = .sqlite(sqlite) }
    init(_ session: PostgreSQLSession) { engine = .postgresql(session) }

    /// Throws if the task that waits for a read was cancelled. Long work calls it between statements; each statement of
    /// a read calls it itself.
    ///
    /// - Throws: `CancellationError`
    func checkCancellation() throws { try cancellation?.check() }

    var dialect: SQLDialect {
        if case .sqlite = engine { .sqlite } else { .postgresql }
    }

    /// Returns true if the bytes of a digest are on this machine; SQLite has a function for it in its statements.
    func isLocal(_ digest: String) -> Bool {
        if case .postgresql(let session) = engine { session.isLocal(digest) } else { true }
    }

    /// The connection of SQLite; nil with another database.
    var sqlite: Database? {
        if case .sqlite(let database) = engine { database } else { nil }
    }

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

    /// Runs a statement that is only used once and has no values.
    func run(once sql: String) throws {
        switch engine {
        case .sqlite(let database): try database.execute(sql: sql)
        case .postgresql(let session): try session.connected().execute(script: sql)
        }
    }

    // MARK: Reading

    /// Calls a closure with each row.
    func each<each Value: SQLBindable>(
        _ sql: String,
        _ values: repeat each Value,
        visit: (SQLRow) throws -> Void
    ) throws {
        var statement = try SQLStatement(sql, self)
        repeat (each values).bind(to: &statement)
        while try statement.step() { try visit(statement.currentRow) }
    }

    /// Returns the first row, or nil if there is none.
    func first<each Value: SQLBindable, Result>(
        _ sql: String,
        _ values: repeat each Value,
        read: (SQLRow) throws -> Result
    ) throws -> Result? {
        var statement = try SQLStatement(sql, self)
        repeat (each values).bind(to: &statement)
        return try statement.step() ? try read(statement.currentRow) : nil
    }

    /// Returns all rows.
    func all<each Value: SQLBindable, Result>(
        _ sql: String,
        _ values: repeat each Value,
        read: (SQLRow) throws -> Result
    ) throws -> [Result] {
        var statement = try SQLStatement(sql, self)
        repeat (each values).bind(to: &statement)
        var results: [Result] = []
        while try statement.step() { results.append(try read(statement.currentRow)) }
        return results
    }

    // Composed statements are not cached, because their number has no limit.

    /// Calls a closure with each row of a composed query.
    func each(_ query: SQLFragment, visit: (SQLRow) throws -> Void) throws {
        let statement = try SQLStatement(query, self)
        while try statement.step() { try visit(statement.currentRow) }
    }

    /// Calls a closure with each row of a composed query as it comes from the database, for results of any size.
    ///
    /// - Parameter visit: must not use the connection
    func stream(_ query: SQLFragment, visit: (SQLRow) throws -> Void) throws {
        let statement = try SQLStatement(query, self)
        try statement.stream(visit)
    }

    /// Returns the first row of a composed query, or nil if there is none.
    func first<Result>(_ query: SQLFragment, read: (SQLRow) throws -> Result) throws -> Result? {
        let statement = try SQLStatement(query, self)
        return try statement.step() ? try read(statement.currentRow) : nil
    }

    /// Returns all rows of a composed query.
    func all<Result>(_ query: SQLFragment, read: (SQLRow) throws -> Result) throws -> [Result] {
        let statement = try SQLStatement(query, self)
        var results: [Result] = []
        while try statement.step() { results.append(try read(statement.currentRow)) }
        return results
    }

    // MARK: Transactions

    /// Runs work in a transaction that has the write lock from the beginning, and commits it; rolls back on an error.
    ///
    /// The statements are prepared once. GRDB's transaction observers would not be notified; the library has none.
    func inImmediateTransaction(_ work: () throws -> Void) throws {
        switch engine {
        case .sqlite: try run("BEGIN IMMEDIATE")
        case .postgresql(let session): try session.begin()
        }
        do {
            try work()
            switch engine {
            // The commit is durable when it returns: `DatabaseFile` has set `synchronous=FULL`, so SQLite syncs its
            // log.
            case .sqlite: try run("COMMIT")
            case .postgresql(let session): try session.commit()
            }
        } catch {
            switch engine {
            // SQLite may have rolled back already, for example if the disk is full.
            case .sqlite(let database): if database.isInsideTransaction { try? run("ROLLBACK") }
            case .postgresql(let session):
                session.rollBack()
                if let refusal = session.refusal(explaining: error) { throw refusal }
            }
            throw error
        }
    }

    /// Runs work in a savepoint of the transaction, and rolls back to it on an error.
    func inSavepoint(_ work: () throws -> Void) throws {
        try run("SAVEPOINT request")
        do {
            try work()
            try run("RELEASE request")
            try flush()
        } catch {
            if isInsideTransaction {
                try run("ROLLBACK TO request")
                try run("RELEASE request")
                try flush()
            }
            throw error
        }
    }

    /// Waits until the database has carried out all statements of the transaction so far.
    private func flush() throws {
        if case .postgresql(let session) = engine { try session.connected().flush() }
    }

    /// True within a transaction. SQLite may have rolled it back, for example because the disk is full.
    private var isInsideTransaction: Bool {
        switch engine {
        case .sqlite(let database): database.isInsideTransaction
        case .postgresql(let session): session.isInTransaction
        }
    }

    /// True if an error of the database has ended the transaction, so that it cannot continue without the statement
    /// that failed.
    var mustRollBack: Bool {
        switch engine {
        case .sqlite: false
        case .postgresql(let session): session.hasFailedTransaction
        }
    }
}

/// Cancels a read of the database whose task was cancelled: the read runs on a thread of the database, where
/// `Task.isCancelled` is not that of the task.
final class ReadCancellation: Sendable {
    private let isCancelled = Atomic(false)

    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// Throws if the task that waits was cancelled.
    ///
    /// - Throws: `CancellationError`
    func check() throws { if isCancelled.load(ordering: .relaxed) { throw CancellationError() } }
}
