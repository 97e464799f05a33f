import Contracts
import JSONValue
import PostgreSQL
import Storage

/// A library's tables in a schema of PostgreSQL: one connection that writes, and several that read from the server or
/// from a replica.
final class PostgreSQLLibraryDatabase: LibraryDatabase {
    /// The address without the password, for logs and errors.
    let location: String
    let election: WriterElection
    private let writer: PostgreSQLAccess
    private let readers: PostgreSQLReaders
    /// The reads from a replica; nil if there is none.
    private let replicated: ReplicatedReads?

    /// Opens the tables, or creates them.
    ///
    /// - Parameters:
    ///   - address: `postgresql://…`; its `search_path` selects the schema
    ///   - replica: the address for reads; nil to read at `address`
    ///   - readers: the number of reading connections to each
    init(
        _ address: String,
        replica: String? = nil,
        readers: Int,
        limits: WriterElection.Limits = WriterElection.Limits(),
        isLocal: @escaping @Sendable (String) -> Bool
    ) throws(StorageError) {
        location = Self.withoutPassword(address)
        let primary = PostgreSQLReaders(address, count: readers, label: "postgresql reader", isLocal: isLocal)
        let replicated = replica.map { replica in
            ReplicatedReads(replica, primary: primary, primaryAddress: address, readers: readers, isLocal: isLocal)
        }
        let election = WriterElection(address, replica: replica, limits: limits) { server in
            if let server { replicated?.notePrimary(server) } else { replicated?.notePrimaryLost() }
        }
        self.election = election
        self.replicated = replicated
        self.readers = primary
        writer = PostgreSQLAccess(
            PostgreSQLSession(address, isLocal: isLocal, check: { try election.check() }),
            label: "postgresql writer"
        )
        do {
            let session = PostgreSQLSession(address)
            defer { session.close() }
            try PostgreSQLSchema.prepare(SQLConnection(session))
        } catch let error as PostgreSQLError where error.kind == .disconnected && replica != nil {
            // The replica serves reads until the server is back; `open` tests whether it has the tables.
            replicated?.notePrimaryLost()
        } catch {
            throw failure(error) ?? .io("\(location): \(error)")
        }
    }

    /// Returns the address without a password, as `postgresql://user:password@host` has one.
    static func withoutPassword(_ address: String) -> String {
        var text = address.replacing(/\/\/([^:@\/]*):[^@\/]*@/) { "//\($0.1):…@" }
        text = text.replacing(/password=[^&\s]*/) { _ in "password=…" }
        return text
    }

    /// Carries out the first transaction, which creates the library or begins a new history if that is necessary.
    ///
    /// - Parameter body: called with false on a standby catalog, which only reads
    func open<Value>(_ body: (SQLConnection, _ isWriter: Bool) throws -> Value) throws -> Value {
        do {
            return try election.open(body)
        } catch {
            throw failure(error) ?? error
        }
    }

    // MARK: Access

    func write<Value: Sendable>(_ updates: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value {
        try await mapErrors {
            try await writer.run { session in
                let connection = SQLConnection(session)
                var value: Value?
                try connection.inImmediateTransaction { value = try updates(connection) }
                guard let value else { throw PostgreSQLError(.statement, "a transaction has no result") }
                return value
            }
        }
    }

    func read<Value: Sendable>(_ value: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value {
        try await mapErrors {
            guard let replicated else { return try await readers.read(value) }
            return try await replicated.read(isWriter: election.refusal == nil, value)
        }
    }

    func noteCommitted(_ sequence: Int64) { replicated?.noteCommitted(sequence) }

    var replayedSequence: Int64? { replicated?.replayed }

    var mayLag: Bool { replicated?.isPrimaryUnreachable == true }

    func wait(for sequence: Int64, milliseconds: Int64) async -> Bool? {
        await replicated?.wait(for: sequence, milliseconds: milliseconds, isWriter: election.refusal == nil)
    }

    func withWriter(_ work: (SQLConnection) -> Void) { writer.sync { work(SQLConnection($0)) } }

    private func mapErrors<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            throw failure(error) ?? error
        }
    }

    // MARK: Errors

    /// Returns the error of a server that cannot be reached.
    static func offline(_ error: PostgreSQLError, at address: String) -> StorageError {
        .serverOffline("\(withoutPassword(address)): \(error). \(advice(error.message))")
    }

    /// Returns advice for the user. libpq reports only in its text why a server has refused a connection.
    private static func advice(_ message: String) -> String {
        if message.contains("database \""), message.contains("does not exist") {
            return "Create it with createdb, or name another one with --store."
        }
        let accessErrors = ["role \"", "authentication failed", "pg_hba.conf", "no password"]
        if accessErrors.contains(where: { message.contains($0) }) {
            return "Check the user and the password in --store, and pg_hba.conf of the server."
        }
        return "Start PostgreSQL or wait until it is reachable again."
    }

    func storageError(_ error: any Error) -> StorageError? { failure(error) }

    private func failure(_ error: any Error) -> StorageError? {
        if let error = error as? StorageError { return error }
        guard let error = error as? PostgreSQLError else { return nil }
        let reason = "\(location): \(error)"
        return switch error.kind {
        case .disconnected: Self.offline(error, at: location)
        case .outOfResources: .notEnoughSpace("\(reason). Free some space of PostgreSQL and try again.")
        case .readOnly: .readOnly("\(reason). Name the primary server in --store.")
        case .conflict: .busy("\(reason). Try again.")
        case .storage: .corrupt("\(reason). Restore a backup of PostgreSQL.")
        case .schema, .constraint, .statement, .limit: nil
        }
    }

    /// PostgreSQL runs its checkpoints itself.
    func checkpointIfDue() throws(StorageError) {}

    func copy(to path: String) throws(StorageError) {
        throw .invalid("the library is in PostgreSQL: back it up with pg_dump, and copy the folder of its resources")
    }

    func close() throws {
        election.close()
        writer.sync { $0.close() }
        readers.close()
        replicated?.close()
    }

    var metrics: JSONObject {
        var json = election.durability.json
        json["engine"] = "postgresql"
        json["server"] = .string(location)
        switch election.role {
        case .writer(let epoch):
            json["role"] = "writer"
            json["epoch"] = .int(epoch)
        case .standby(let writer):
            json["role"] = "standby"
            json["writer"] = .string(writer)
        }
        if let replicated { json["replica"] = .object(replicated.metrics) }
        return json
    }

    var durabilityProblem: String? { election.durability.problem }

    var serverProblem: LibraryStatus.Problem? {
        switch election.connection {
        case .answering: nil
        case .readOnly:
            LibraryStatus.Problem(
                .readOnly,
                "the library's database server accepts no changes; name the primary server in --store, or find out why "
                    + "it is read-only, for example because its disk is full"
            )
        case .replicaOnly:
            LibraryStatus.Problem(
                .readOnly,
                "the library's database server does not answer, and only its replica is read; start PostgreSQL or wait "
                    + "until it is reachable again"
            )
        case .unreachable: .databaseServer
        }
    }

    /// PostgreSQL writes its log itself.
    var walBytes: Int64 { 0 }
    /// PostgreSQL checks its pages itself, if it was set up so.
    var isCheckUnfinished: Bool { false }
}
