import Basics
import Dispatch
import JSONValue
import PhotoModel
import PostgreSQL
import Storage
import Synchronization

/// Reads at a replica, or at the primary server, and never a state older than one that this catalog has read before.
///
/// The catalog that writes reads at the primary server, where its own commits are at once. A standby asks the primary
/// server for the newest sequence, and reads at the replica once that has replayed it; so a client that has changed
/// something through another catalog reads its change at the standby. If the primary server does not answer soon, reads
/// go to the replica once it has replayed all that this catalog knows. A replica that does not answer, or lags by more
/// than a second, is replaced by the primary server.
///
/// A read may take long, and connections notice late that their server has disappeared. A running read therefore
/// continues only while the server answers a short query.
///
/// A failover changes which server is which. Connections that lead to a former primary server are ended when the
/// catalog knows the new one; and while reads at the replica lead to the primary server, because there was no other
/// one, the catalog looks for a replica that is available again. So the loss of one server never ends both kinds of
/// connections.
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
        var watch: Int64 = 100
    }

    private struct State {
        /// True if the primary server does not answer.
        var isPrimaryAway = false
        /// The primary server, as far as it is known.
        var primaryServer: String?
        var nextSearch = DispatchTime(uptimeNanoseconds: 0)
        /// True if reads go to the primary server, because the replica lags or does not answer.
        var isReplicaAvoided = false
        var nextLook = DispatchTime(uptimeNanoseconds: 0)
        var replicaReads = 0
        var primaryReads = 0
    }

    private struct ReplicaBehind: Error { let head: LibraryHead }
    private struct PrimaryAway: Error {}
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
    /// Looks for a replica that is available again.
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
    func losePrimary() {
        let lost = state.withLock { state -> String? in
            defer { state.isPrimaryAway = true }
            return state.isPrimaryAway ? nil : state.primaryServer
        }
        guard let lost else { return }
        replica.disconnectIdle { $0 == lost }
        replicaHead.disconnect { $0 == lost }
        position.disconnect { $0 == lost }
    }

    /// Records which server is the primary one, and that it answers.
    func findPrimary(_ server: String) {
        state.withLock { ($0.isPrimaryAway, $0.primaryServer) = (false, server) }
        // Reads there are repeated at the right server.
        primary.disconnect { $0 != server }
        primaryHead.disconnect { $0 != server }
        let isDue = state.withLock { state in
            guard .now() >= state.nextSearch else { return false }
            state.nextSearch = .now() + .milliseconds(Int(limits.retry))
            return true
        }
        guard isDue else { return }
        // A catalog that writes needs the replica only when the primary server is lost: it knows then which host
        // answers.
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
    var isPrimaryAway: Bool { state.withLock { $0.isPrimaryAway } }

    /// Does work at a server, without a time limit as long as the server answers short queries.
    ///
    /// - Throws: ``NoAnswer`` if the server does not; the work is then abandoned, but may still run
    private func whileAnswering<Value: Sendable>(
        _ serverHead: ServerHead,
        _ readers: PostgreSQLReaders,
        _ work: @escaping @Sendable (PostgreSQLReaders.Lease) async throws -> Value
    ) async throws -> Value {
        let outcome = Promise<Result<Value, any Error>>()
        let lease = PostgreSQLReaders.Lease()
        Task {
            do { outcome.fulfill(.success(try await work(lease))) } catch { outcome.fulfill(.failure(error)) }
        }
        let watch = Task { [limits] in
            while await TaskDelay.timeout(.milliseconds(limits.watch)) {
                guard await serverHead.ask() == nil else { continue }
                if outcome.fulfill(.failure(NoAnswer())) { readers.giveUp(lease) }
                return
            }
        }
        defer { watch.cancel() }
        return try await outcome.value().get()
    }

    /// Reads at the primary server.
    ///
    /// - Throws: ``PrimaryAway`` if it does not answer, the connection was lost or there is none
    private func atPrimary<Value: Sendable>(
        _ value: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value {
        do {
            let value = try await whileAnswering(primaryHead, primary) { [primary] lease in
                do {
                    return try await primary.read(lease: lease, value)
                } catch let error as PostgreSQLError where error.kind == .disconnected {
                    // Another server may be the primary one now: reading changes nothing, and is repeated.
                    return try await primary.read(lease: lease, value)
                }
            }
            state.withLock { $0.primaryReads += 1 }
            return value
        } catch let error as PostgreSQLError where error.kind == .disconnected {
            losePrimary()
            throw PrimaryAway()
        } catch is NoAnswer {
            losePrimary()
            throw PrimaryAway()
        }
    }

    // MARK: Reading

    /// Records a sequence that the catalog knows: reads that begin afterwards have it.
    func noteCommitted(_ sequence: Int64) { position.noteCommitted(sequence) }

    /// The newest sequence that the replica has replayed.
    var replayed: Int64 { position.replayed }

    /// - Parameter isWriter: true in the catalog that writes
    func read<Value: Sendable>(
        isWriter: Bool,
        _ value: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value {
        if isWriter || isReplicaAvoided, !isPrimaryAway {
            do { return try await atPrimary(value) } catch is PrimaryAway {}
        }
        if !isPrimaryAway {
            if let head = await primaryHead.ask() { noteCommitted(head) } else { losePrimary() }
        }
        do {
            return try await whileAnswering(replicaHead, replica) { [self] lease in
                try await atReplica(lease, value, position.known)
            }
        } catch is NoAnswer {
            if let read = try await instead(value) { return read }
            throw PostgreSQLError(.disconnected, "neither the primary server nor the replica answers")
        } catch let error as ReplicaBehind {
            if let read = try await instead(value) { return read }
            throw CatalogError.behind(head: error.head.token, wanted: position.known)
        } catch let error as PostgreSQLError where [.disconnected, .conflict, .schema].contains(error.kind) {
            // The schema: the library was created or upgraded a moment ago, and the replica has not replayed that yet.
            if let read = try await instead(value) { return read }
            throw error
        }
    }

    /// Reads at the primary server because the replica cannot; nil if the primary server does not answer either.
    private func instead<Value: Sendable>(
        _ value: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value? {
        do {
            let value = try await atPrimary(value)
            state.withLock { state in
                state.isReplicaAvoided = true
                state.nextLook = .now() + .milliseconds(Int(limits.retry))
            }
            return value
        } catch is PrimaryAway {
            return nil
        }
    }

    /// True if reads go to the primary server for now. It checks the replica from time to time.
    private var isReplicaAvoided: Bool {
        let (isAvoided, looks) = state.withLock { state in
            guard state.isReplicaAvoided, .now() >= state.nextLook else { return (state.isReplicaAvoided, false) }
            state.nextLook = .now() + .milliseconds(Int(limits.retry))
            return (true, true)
        }
        if looks {
            let known = position.known
            position.lookOnce { [self] replayed in
                if replayed >= known { state.withLock { $0.isReplicaAvoided = false } }
            }
        }
        return isAvoided
    }

    private func atReplica<Value: Sendable>(
        _ lease: PostgreSQLReaders.Lease,
        _ value: @escaping @Sendable (SQLConnection) throws -> Value,
        _ newest: Int64
    ) async throws -> Value {
        var attempts = 0
        while true {
            attempts += 1
            let isAgain = attempts > 1
            do {
                let outcome = try await replica.run(lease: lease) { [position] session in
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
                    guard attempts < Self.mostAttempts else { throw ReplicaBehind(head: head) }
                    if isAgain { try await replica.run { $0.close() } }
                    let isAway = isPrimaryAway
                    let answer = await position.wait(
                        for: newest,
                        milliseconds: isAway ? limits.wait : limits.lag,
                        lag: isAway ? nil : limits.lag
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

    private static let mostAttempts = 4

    /// Waits until reads have a sequence that a client needs.
    ///
    /// - Returns: false if they do not have it in time
    func wait(for sequence: Int64, milliseconds: Int64, isWriter: Bool) async -> Bool {
        if position.replayed >= sequence { return true }
        let isAway = isPrimaryAway
        if isWriter || isReplicaAvoided, !isAway, position.known >= sequence { return true }
        switch await position.wait(for: sequence, milliseconds: milliseconds, lag: isAway ? nil : limits.lag) {
        case .reached: return true
        case .lagging: return !isPrimaryAway
        case .late: return position.known >= sequence && !isPrimaryAway
        }
    }

    // MARK: Figures

    var metrics: JSONObject {
        let state = state.withLock { $0 }
        return [
            "server": .string(location), "sequence": .int(position.replayed), "reads": JSON(state.replicaReads),
            "readsAtPrimary": JSON(state.primaryReads), "isUsed": .bool(!state.isReplicaAvoided),
            "isPrimaryAway": .bool(state.isPrimaryAway),
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
