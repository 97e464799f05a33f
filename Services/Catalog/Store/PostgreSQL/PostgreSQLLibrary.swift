import DequeModule
import Dispatch
import JSONValue
import PostgreSQL
import Storage
import Synchronization

/// A library's tables in a schema of PostgreSQL: one connection that writes and some that read.
///
/// libpq blocks, so each connection has a serial queue of its own, whose threads are not Swift's.
final class PostgreSQLLibrary: LibraryDatabase {
    /// A connection and its queue.
    final class Access: @unchecked Sendable {
        // Used on the queue only.
        private let session: PostgreSQLSession
        private let queue: DispatchQueue

        init(_ session: PostgreSQLSession, label: String) {
            self.session = session
            queue = DispatchQueue(label: label)
        }

        func run<Value: Sendable>(
            _ work: @escaping @Sendable (PostgreSQLSession) throws -> Value
        ) async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                queue.async { [self] in continuation.resume(with: Result { try work(session) }) }
            }
        }

        func sync<Value>(_ work: (PostgreSQLSession) throws -> Value) rethrows -> Value {
            try queue.sync { try work(session) }
        }
    }

    /// The most reads that wait for a connection.
    static let waitingLimit = 4096

    /// The address without the password, for logs and errors.
    let location: String
    let election: WriterElection
    private let writer: Access
    private let readers: Mutex<Readers>

    private struct Readers {
        var idle: [Access]
        var waiting: Deque<CheckedContinuation<Access, Never>> = []
    }

    /// Opens the tables, or creates them.
    ///
    /// - Parameters:
    ///   - address: `postgresql://…`; its `search_path` selects the schema
    ///   - readers: the number of reading connections
    init(
        _ address: String,
        readers: Int,
        limits: WriterElection.Limits = WriterElection.Limits(),
        isLocal: @escaping @Sendable (String) -> Bool
    ) throws(StorageError) {
        location = Self.withoutPassword(address)
        let election = WriterElection(address, limits: limits)
        self.election = election
        writer = Access(
            PostgreSQLSession(address, isLocal: isLocal, check: { try election.check() }),
            label: "postgresql writer"
        )
        self.readers = Mutex(
            Readers(
                idle: (0..<max(1, readers)).map {
                    Access(PostgreSQLSession(address, isLocal: isLocal), label: "postgresql reader \($0)")
                }
            )
        )
        do {
            let session = PostgreSQLSession(address)
            defer { session.close() }
            try PostgreSQLSchema.prepare(SQLConnection(session))
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

    /// Carries out the first transaction, which begins the library or its history.
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
        try await mapped {
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
        let reader = try await take()
        defer { put(reader) }
        return try await mapped {
            try await reader.run { session in
                try session.begin(reading: true)
                do {
                    let value = try value(SQLConnection(session))
                    try session.commit()
                    return value
                } catch {
                    session.rollBack()
                    throw error
                }
            }
        }
    }

    func withWriter(_ work: (SQLConnection) -> Void) { writer.sync { work(SQLConnection($0)) } }

    private func take() async throws(StorageError) -> Access {
        let isFull = readers.withLock { $0.waiting.count >= Self.waitingLimit }
        guard !isFull else { throw .busy("\(Self.waitingLimit) reads wait for a connection. Try again.") }
        return await withCheckedContinuation { continuation in
            let reader = readers.withLock { readers -> Access? in
                if let reader = readers.idle.popLast() { return reader }
                readers.waiting.append(continuation)
                return nil
            }
            if let reader { continuation.resume(returning: reader) }
        }
    }

    private func put(_ reader: Access) {
        let next = readers.withLock { readers in
            let next = readers.waiting.popFirst()
            if next == nil { readers.idle.append(reader) }
            return next
        }
        next?.resume(returning: reader)
    }

    private func mapped<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            throw failure(error) ?? error
        }
    }

    // MARK: Errors

    func storageError(_ error: any Error) -> StorageError? { failure(error) }

    private func failure(_ error: any Error) -> StorageError? {
        if let error = error as? StorageError { return error }
        guard let error = error as? PostgreSQLError else { return nil }
        let reason = "\(location): \(error)"
        return switch error.kind {
        case .disconnected: .offline("\(reason). Start PostgreSQL or wait until it is reachable again.")
        case .outOfResources: .notEnoughSpace("\(reason). Free some space of PostgreSQL and try again.")
        case .readOnly: .readOnly("\(reason). Name the primary server in --store.")
        case .conflict: .busy("\(reason). Try again.")
        case .storage: .corrupt("\(reason). Restore a backup of PostgreSQL.")
        case .constraint, .statement, .limit: nil
        }
    }

    /// PostgreSQL makes its checkpoints itself.
    func checkpointIfDue() throws(StorageError) {}

    func copy(to path: String) throws(StorageError) {
        throw .invalid("the library is in PostgreSQL: back it up with pg_dump, and copy the folder of its resources")
    }

    func close() throws {
        election.close()
        writer.sync { $0.close() }
        for reader in readers.withLock({ $0.idle }) { reader.sync { $0.close() } }
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
        return json
    }

    var durabilityProblem: String? { election.durability.problem }

    /// PostgreSQL writes its log itself.
    var walBytes: Int64 { 0 }
    /// PostgreSQL checks its pages itself, if it was set up so.
    var isCheckUnfinished: Bool { false }
}
