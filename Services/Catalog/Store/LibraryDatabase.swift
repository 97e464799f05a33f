import Contracts
import GRDB
import Glibc
import JSONValue
import PostgreSQL
import Storage
import Synchronization

/// The database of a library: a file of SQLite, or a schema of PostgreSQL.
protocol LibraryDatabase: Sendable {
    /// Writes in one transaction; it is durable when this returns.
    func write<Value: Sendable>(_ updates: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value

    /// Reads from one snapshot.
    func read<Value: Sendable>(_ value: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value

    /// Records a sequence that the catalog has committed, or read: reads that begin afterwards have it.
    func noteCommitted(_ sequence: Int64)

    /// Waits until reads have a sequence.
    ///
    /// - Returns: false if they do not have it in time; nil if there is no replica, so that reads have all commits
    func wait(for sequence: Int64, milliseconds: Int64) async -> Bool?

    /// The newest sequence that a replica has replayed; nil if reads have all that the catalog knows.
    var replayedSequence: Int64? { get }

    /// True if reads may lack changes that clients know of already, because only a replica answers.
    var mayLag: Bool { get }

    /// Calls `work` with the writing connection, outside of a transaction, on the caller's thread or while it waits.
    func withWriter(_ work: (SQLConnection) -> Void)

    /// Returns the failure of the database or its disk that an error reports; nil for any other error.
    func storageError(_ error: any Error) -> StorageError?

    /// Writes SQLite's log into the database if it is large. It blocks.
    func checkpointIfDue() throws(StorageError)

    /// Copies the database, as it is at one sequence, to a new file of SQLite.
    func copy(to path: String) throws(StorageError)

    func close() throws

    /// The members of the section `store` of the method `figures`.
    var metrics: JSONObject { get }
    /// The reason why an acknowledged change may not be durable; nil if it is.
    var durabilityProblem: String? { get }
    /// The state of a library whose database server does not answer; nil if it does, and without a server.
    var serverProblem: LibraryStatus.Problem? { get }
    /// The size in bytes of what is written but not yet in the database's files; 0 if unknown.
    var walBytes: Int64 { get }
    /// True if the check at the start ran out of time.
    var isCheckUnfinished: Bool { get }
}

extension LibraryDatabase {
    func noteCommitted(_ sequence: Int64) {}

    func wait(for sequence: Int64, milliseconds: Int64) async -> Bool? { nil }

    var replayedSequence: Int64? { nil }

    var mayLag: Bool { false }

    var serverProblem: LibraryStatus.Problem? { nil }
}

/// A database of SQLite.
struct SQLiteLibraryDatabase: LibraryDatabase {
    let file: DatabaseFile

    func write<Value: Sendable>(_ updates: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value {
        try await file.write { try updates(SQLConnection($0)) }
    }

    func read<Value: Sendable>(_ value: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value {
        try await file.read { try value(SQLConnection($0)) }
    }

    func withWriter(_ work: (SQLConnection) -> Void) {
        file.pool.writeWithoutTransaction { work(SQLConnection($0)) }
    }

    func storageError(_ error: any Error) -> StorageError? { file.mapped(error) as? StorageError }

    func checkpointIfDue() throws(StorageError) { try file.checkpointIfDue() }

    func copy(to path: String) throws(StorageError) { try file.copy(to: path) }

    func close() throws { try file.close() }

    var walBytes: Int64 {
        var status = stat()
        return stat(file.path + "-wal", &status) == 0 ? Int64(status.st_size) : 0
    }

    var metrics: JSONObject { ["engine": "sqlite"] }
    /// Every connection that writes has `synchronous=FULL`.
    var durabilityProblem: String? { nil }

    var isCheckUnfinished: Bool { file.check == .unfinished }
}

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

    /// Called by long work between its statements; each statement of a read calls it itself.
    ///
    /// - Throws: `CancellationError` if the task that waits was cancelled
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
    /// The statements are prepared once. The library has no observers of transactions, which would not be notified.
    func inImmediateTransaction(_ work: () throws -> Void) throws {
        switch engine {
        case .sqlite: try run("BEGIN IMMEDIATE")
        case .postgresql(let session): try session.begin()
        }
        do {
            try work()
            switch engine {
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

    /// - Throws: `CancellationError` if the task that waits was cancelled
    func check() throws { if isCancelled.load(ordering: .relaxed) { throw CancellationError() } }
}
