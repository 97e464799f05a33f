import Basics
import Dispatch
import JSONValue
import PhotoModel
import PostgreSQL
import Storage
import Synchronization

/// Reads at a replica, or at the primary server, and never a state older than one that this catalog has read before.
///
/// The catalog that writes reads at the primary server, where its own commits are visible at once. A standby asks the
/// primary server for the newest sequence, and reads at the replica once it has replayed it; so a client that has
/// changed something through another catalog reads its change at the standby. If the primary server does not answer
/// soon, reads go to the replica once it has replayed all that this catalog knows. A replica that does not answer, or
/// lags by more than a second, is replaced by the primary server.
///
/// A read may take long, and a connection detects the loss of its server late. A running read therefore continues only
/// while the server answers short queries.
///
/// A failover exchanges the roles of the servers. Connections that lead to a former primary server are ended when the
/// catalog knows the new one; and while the connections for the replica lead to the primary server, because no other
/// server was available, the catalog searches for a replica that is available again. So the loss of one server never
/// ends both kinds of connections.
final class ReplicatedReads: Sendable {
    /// Limits, in milliseconds.
    struct Limits: Sendable {
        /// The maximum lag of a replica while the primary server answers.
        var lag: Int64 = 1000
        /// The maximum time that a read waits for a replica while the primary server does not answer.
        var wait: Int64 = 10_000
        /// The time between two checks of a replica that is not used.
        var retry: UInt64 = 1000
        /// The time within which a server has to answer a short query, and the time between two such queries during a
        /// read.
        var probeTimeout: Int64 = 300
        var probeInterval: Int64 = 100
    }

    private struct State {
        /// True if the primary server does not answer.
        var isPrimaryUnreachable = false
        /// The primary server that has answered last; nil if none has.
        var primaryServer: String?
        var nextSearch = DispatchTime(uptimeNanoseconds: 0)
        /// True if reads go to the primary server, because the replica lags or does not answer.
        var isReplicaAvoided = false
        var nextReplicaCheck = DispatchTime(uptimeNanoseconds: 0)
        var replicaReads = 0
        var primaryReads = 0
    }

    private struct ReplicaBehind: Error { let head: LibraryHead }
    private struct PrimaryUnreachable: Error {}
    private struct NoAnswer: Error {}

    private enum Outcome<Value: Sendable>: Sendable {
        case value(Value)
        case behind(LibraryHead)
    }

    let location: String
    private let primary: PostgreSQLReaders
    private let replica: PostgreSQLReaders
    private let position: ReplicaPosition
    private let primaryHead: ServerHead
    private let replicaHead: ServerHead
    /// The connection that searches for a replica that is available again.
    private let search: PostgreSQLAccess
    private let limits: Limits
    private let state = Mutex(State())

    init(
        _ address: String,
        primary: PostgreSQLReaders,
        primaryAddress: String,
        readers: Int,
        limits: Limits = Limits(),
        isLocal: @escaping @Sendable (String) -> Bool
    ) {
        location = PostgreSQLLibraryDatabase.withoutPassword(address)
        self.primary = primary
        self.limits = limits
        replica = PostgreSQLReaders(address, count: readers, label: "postgresql replica", isLocal: isLocal)
        position = ReplicaPosition(address)
        primaryHead = ServerHead(primaryAddress, label: "postgresql head", timeout: limits.probeTimeout)
        replicaHead = ServerHead(address, label: "postgresql replica head", timeout: limits.probeTimeout)
        search = PostgreSQLAccess(PostgreSQLSession(address), label: "postgresql replica search")
    }

    // MARK: The primary server

    /// Records that the primary server does not answer. Connections to the replica that lead to it do not answer
    /// either.
    func notePrimaryLost() {
        let lost = state.withLock { state -> String? in
            defer { state.isPrimaryUnreachable = true }
            return state.isPrimaryUnreachable ? nil : state.primaryServer
        }
        guard let lost else { return }
        replica.disconnectIdle { $0 == lost }
        replicaHead.disconnect { $0 == lost }
        position.disconnect { $0 == lost }
    }

    /// Records which server is the primary one, and that it answers.
    func notePrimary(_ server: String) {
        state.withLock { ($0.isPrimaryUnreachable, $0.primaryServer) = (false, server) }
        // Reads there are repeated at the right server.
        primary.disconnect { $0 != server }
        primaryHead.disconnect { $0 != server }
        let isDue = state.withLock { state in
            guard .now() >= state.nextSearch else { return false }
            state.nextSearch = .now() + .milliseconds(Int(limits.retry))
            return true
        }
        guard isDue else { return }
        // A catalog that writes needs the replica only when the primary server is lost; the connection then leads to a
        // host that answers.
        replicaHead.refresh()
        if replica.servers.contains(server) { searchReplica(besides: server) }
    }

    /// Moves the connections of the replica from the primary server to a replica, if there is one.
    private func searchReplica(besides primary: String) {
        search.async { [self] session in
            defer { session.close() }
            guard (try? session.connect()) != nil, let server = session.peer?.server, server != primary else { return }
            replica.disconnectIdle { $0 == primary }
            replicaHead.disconnect { $0 == primary }
            position.disconnect { $0 == primary }
        }
    }

    /// True if the primary server does not answer.
    var isPrimaryUnreachable: Bool { state.withLock { $0.isPrimaryUnreachable } }

    /// Runs work at a server, without a time limit as long as the server answers short queries.
    ///
    /// - Throws: ``NoAnswer`` if the server does not; the work is then abandoned, but may still run
    private func runWhileAnswering<Value: Sendable>(
        _ serverHead: ServerHead,
        _ readers: PostgreSQLReaders,
        _ work: @escaping @Sendable (PostgreSQLReaders.RunningRead) async throws -> Value
    ) async throws -> Value {
        let outcome = Promise<Result<Value, any Error>>()
        let read = PostgreSQLReaders.RunningRead()
        Task {
            do { outcome.fulfill(.success(try await work(read))) } catch { outcome.fulfill(.failure(error)) }
        }
        let probes = Task { [limits] in
            while await TaskDelay.timeout(.milliseconds(limits.probeInterval)) {
                guard await serverHead.readSequence() == nil else { continue }
                if outcome.fulfill(.failure(NoAnswer())) { readers.abandon(read) }
                return
            }
        }
        defer { probes.cancel() }
        return try await outcome.value().get()
    }

    /// Reads at the primary server.
    ///
    /// - Throws: ``PrimaryUnreachable`` if it does not answer, the connection was lost or there is none
    private func readAtPrimary<Value: Sendable>(
        _ value: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value {
        do {
            let value = try await runWhileAnswering(primaryHead, primary) { [primary] read in
                do {
                    return try await primary.read(running: read, value)
                } catch let error as PostgreSQLError where error.kind == .disconnected {
                    // Another server may be the primary one now: reading changes nothing, and is repeated.
                    return try await primary.read(running: read, value)
                }
            }
            state.withLock { $0.primaryReads += 1 }
            return value
        } catch let error as PostgreSQLError where error.kind == .disconnected {
            notePrimaryLost()
            throw PrimaryUnreachable()
        } catch is NoAnswer {
            notePrimaryLost()
            throw PrimaryUnreachable()
        }
    }

    // MARK: Reading

    /// Records a sequence that the catalog knows: reads that begin afterwards include it.
    func noteCommitted(_ sequence: Int64) { position.noteCommitted(sequence) }

    /// The newest sequence that the replica has replayed.
    var replayed: Int64 { position.replayed }

    /// Reads from one snapshot of the replica, or of the primary server.
    ///
    /// - Parameter isWriter: true in the catalog that writes
    func read<Value: Sendable>(
        isWriter: Bool,
        _ value: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value {
        if isWriter || isReplicaAvoided, !isPrimaryUnreachable {
            do { return try await readAtPrimary(value) } catch is PrimaryUnreachable {}
        }
        if !isPrimaryUnreachable {
            if let head = await primaryHead.readSequence() { noteCommitted(head) } else { notePrimaryLost() }
        }
        do {
            return try await runWhileAnswering(replicaHead, replica) { [self] read in
                try await readAtReplica(read, value, position.known)
            }
        } catch is NoAnswer {
            if let read = try await readAtPrimaryInstead(value) { return read }
            throw PostgreSQLError(.disconnected, "neither the primary server nor the replica answers")
        } catch let error as ReplicaBehind {
            if let read = try await readAtPrimaryInstead(value) { return read }
            throw CatalogError.behind(head: error.head.token, requested: position.known)
        } catch let error as PostgreSQLError where [.disconnected, .conflict, .schema].contains(error.kind) {
            // An error of the schema: the library was just created or upgraded, and the replica has not replayed that
            // yet.
            if let read = try await readAtPrimaryInstead(value) { return read }
            throw error
        }
    }

    /// Reads at the primary server because the replica cannot; nil if the primary server does not answer either.
    private func readAtPrimaryInstead<Value: Sendable>(
        _ value: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value? {
        do {
            let value = try await readAtPrimary(value)
            state.withLock { state in
                state.isReplicaAvoided = true
                state.nextReplicaCheck = .now() + .milliseconds(Int(limits.retry))
            }
            return value
        } catch is PrimaryUnreachable {
            return nil
        }
    }

    /// True if reads go to the primary server for now. It checks the replica from time to time.
    private var isReplicaAvoided: Bool {
        let (isAvoided, isDue) = state.withLock { state in
            guard state.isReplicaAvoided, .now() >= state.nextReplicaCheck else {
                return (state.isReplicaAvoided, false)
            }
            state.nextReplicaCheck = .now() + .milliseconds(Int(limits.retry))
            return (true, true)
        }
        if isDue {
            let known = position.known
            position.readHeadOnce { [self] replayed in
                if replayed >= known { state.withLock { $0.isReplicaAvoided = false } }
            }
        }
        return isAvoided
    }

    private func readAtReplica<Value: Sendable>(
        _ read: PostgreSQLReaders.RunningRead,
        _ value: @escaping @Sendable (SQLConnection) throws -> Value,
        _ newest: Int64
    ) async throws -> Value {
        var attempts = 0
        while true {
            attempts += 1
            let isRepeated = attempts > 1
            do {
                let outcome = try await replica.run(running: read) { [position] session in
                    try session.inReading { connection -> Outcome<Value> in
                        let head = try LibraryReader(database: connection).head()
                        guard head.sequence >= newest else { return .behind(head) }
                        let value = try value(connection)
                        position.noteReplayed(head.sequence)
                        return .value(value)
                    }
                }
                switch outcome {
                case .value(let value):
                    state.withLock { $0.replicaReads += 1 }
                    return value
                case .behind(let head):
                    // Another connection may lead to another replica, which has replayed it already.
                    guard attempts < Self.maxAttempts else { throw ReplicaBehind(head: head) }
                    if isRepeated { try await replica.run { $0.close() } }
                    let isUnreachable = isPrimaryUnreachable
                    let answer = await position.wait(
                        for: newest,
                        milliseconds: isUnreachable ? limits.wait : limits.lag,
                        lag: isUnreachable ? nil : limits.lag
                    )
                    guard answer == .reached else { throw ReplicaBehind(head: head) }
                }
            } catch let error as PostgreSQLError {
                // The server has ended the connection, or the transaction because it conflicts with the replay: reading
                // changes nothing, and is repeated.
                guard error.kind == .disconnected || error.kind == .conflict, attempts < 2 else { throw error }
            }
        }
    }

    private static let maxAttempts = 4

    /// Waits until reads include a sequence that a client needs.
    ///
    /// - Returns: false if they do not include it in time
    func wait(for sequence: Int64, milliseconds: Int64, isWriter: Bool) async -> Bool {
        if position.replayed >= sequence { return true }
        let isUnreachable = isPrimaryUnreachable
        if isWriter || isReplicaAvoided, !isUnreachable, position.known >= sequence { return true }
        switch await position.wait(for: sequence, milliseconds: milliseconds, lag: isUnreachable ? nil : limits.lag) {
        case .reached: return true
        case .lagging: return !isPrimaryUnreachable
        case .late: return position.known >= sequence && !isPrimaryUnreachable
        }
    }

    // MARK: Metrics

    var metrics: JSONObject {
        let state = state.withLock { $0 }
        return [
            "server": .string(location), "sequence": .int(position.replayed), "reads": JSON(state.replicaReads),
            "readsAtPrimary": JSON(state.primaryReads), "isUsed": .bool(!state.isReplicaAvoided),
            "isPrimaryAway": .bool(state.isPrimaryUnreachable),
            "servers": .array(replica.servers.subtracting([state.primaryServer ?? ""]).sorted().map { .string($0) }),
        ]
    }

    func close() {
        position.close()
        primaryHead.close()
        replicaHead.close()
        search.sync { $0.close() }
        replica.close()
    }
}
