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

    /// Notes a sequence that the catalog has committed, or read: reads that begin afterwards have it.
    func noteCommitted(_ sequence: Int64)

    /// Waits until reads have a sequence; nil if they have all that the catalog knows, because they are where it is
    /// committed.
    ///
    /// - Returns: false if they do not have it in time
    func wait(for sequence: Int64, milliseconds: Int64) async -> Bool?

    /// The newest sequence that a replica has shown; nil if reads have all that the catalog knows.
    var shownSequence: Int64? { get }

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

    var shownSequence: Int64? { nil }

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
