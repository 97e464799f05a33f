import Contracts
import GRDB
import Glibc
import JSONValue
import Storage

/// The database of a library: a file of SQLite, or a schema of PostgreSQL.
protocol LibraryDatabase: Sendable {
    /// Writes in one transaction; it is durable when this returns.
    func write<Value: Sendable>(_ updates: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value

    /// Reads from one snapshot.
    func read<Value: Sendable>(_ value: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value

    /// Records a sequence that the catalog has committed or read: reads that begin afterwards include it.
    func noteCommitted(_ sequence: Int64)

    /// Waits until reads include a sequence.
    ///
    /// - Returns: false if they do not include it in time; nil if there is no replica, so that reads include all
    ///   commits
    func wait(for sequence: Int64, milliseconds: Int64) async -> Bool?

    /// The newest sequence that a replica has replayed; nil without a replica.
    var replayedSequence: Int64? { get }

    /// True if reads may lack changes that clients have already seen, because only a replica answers.
    var mayLag: Bool { get }

    /// Calls `work` with the writing connection, outside of a transaction, on the caller's thread or while it waits.
    func withWriter(_ work: (SQLConnection) -> Void)

    /// Returns the failure of the database or its disk that an error reports; nil for any other error.
    func storageError(_ error: any Error) -> StorageError?

    /// Writes SQLite's write-ahead log into the database if it is large. It blocks.
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
    /// The size of SQLite's write-ahead log in bytes; 0 if unknown, and with PostgreSQL.
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
