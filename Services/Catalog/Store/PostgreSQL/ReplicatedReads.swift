import Basics
import Dispatch
import JSONValue
import PhotoModel
import PostgreSQL
import Storage
import Synchronization

/// Reads at a replica, or at the primary server, and never anything older than what this catalog has shown before.
///
/// The catalog that writes reads at the primary server, where its own commits are at once. A standby asks the primary server
/// for the newest sequence, and reads at the replica when that shows it; so a client that has changed something through
/// another catalog reads it here. If the primary server does not answer soon, reads go on at the replica, with everything
/// that this catalog knows of. A replica that does not answer, or lags by more than a second, is replaced by the
/// primary server.
///
/// A read may take long, and a server that has disappeared is noticed late by its connections. So a read that is not done
/// yet goes on only while the server answers a short question.
///
/// A failover changes which server is which. Connections that lead to a former primary server are ended when the
/// catalog knows the new one; and while reads at the replica lead to the primary server, because there was no other
/// one, the catalog looks for a replica that has come back. So the loss of one server never ends both kinds of
/// connections.
final class ReplicatedReads: Sendable {
    /// Limits, in milliseconds.
    struct Limits: Sendable {
        /// The longest time by which a replica may lag while the primary server answers.
        var lag: Int64 = 1000
        /// The longest time that a read waits for a replica while the primary server is away.
        var wait: Int64 = 10_000
        /// The time between two looks at a replica that is not used.
        var retry: UInt64 = 1000
        /// The time that a server has for an answer to a short question, and the time between two questions during a
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
    private let question: ServerHead
    private let replicaQuestion: ServerHead
    /// Looks for a replica that has come back.
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
        question = ServerHead(primaryAddress, label: "postgresql head", timeout: limits.probeTimeout)
        replicaQuestion = ServerHead(address, label: "postgresql replica head", timeout: limits.probeTimeout)
        search = PostgreSQLAccess(PostgreSQLSession(address), label: "postgresql replica search")
    }

    // MARK: The primary server

    /// Learns that the primary server does not answer: what the replica's connections ask of it does not either.
    func losePrimary() {
        let lost = state.withLock { state -> String? in
            defer { state.isPrimaryAway = true }
            return state.isPrimaryAway ? nil : state.primaryServer
        }
        guard let lost else { return }
        replica.disconnectIdle { $0 == lost }
        replicaQuestion.disconnect { $0 == lost }
        position.disconnect { $0 == lost }
    }

    /// Learns which server is the primary one, and that it answers.
    func findPrimary(_ server: String) {
        state.withLock { ($0.isPrimaryAway, $0.primaryServer) = (false, server) }
        // Reads there are repeated at the right server.
        primary.disconnect { $0 != server }
        question.disconnect { $0 != server }
        let isDue = state.withLock { state in
            guard .now() >= state.nextSearch else { return false }
            state.nextSearch = .now() + .milliseconds(Int(limits.retry))
            return true
        }
        guard isDue else { return }
        // A catalog that writes needs the replica only when the primary server is lost: it knows then which host
        // answers.
        replicaQuestion.refresh()
        if replica.servers.contains(server) { searchReplica(besides: server) }
    }

    /// Has reads go to a replica, if there is one, instead of the primary server.
    private func searchReplica(besides primary: String) {
        search.async { [self] session in
            defer { session.close() }
            guard (try? session.connect()) != nil, let server = session.peer?.server, server != primary else { return }
            replica.disconnectIdle { $0 == primary }
            replicaQuestion.disconnect { $0 == primary }
            position.disconnect { $0 == primary }
        }
    }

    /// True if the primary server does not answer.
    var isPrimaryAway: Bool { state.withLock { $0.isPrimaryAway } }

    /// Does work at a server that takes as long as it needs while the server answers short questions.
    ///
    /// - Throws: ``NoAnswer`` if the server does not; the work then goes on, and nobody waits for its end
    private func whileAnswering<Value: Sendable>(
        _ question: ServerHead,
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
                guard await question.ask() == nil else { continue }
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
            let value = try await whileAnswering(question, primary) { [primary] lease in
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

    /// Learns of a sequence that the catalog knows: reads that begin afterwards have it.
    func noteCommitted(_ sequence: Int64) { position.noteCommitted(sequence) }

    /// The newest sequence that the replica has shown.
    var shown: Int64 { position.shown }

    /// - Parameter isWriter: true in the catalog that writes
    func read<Value: Sendable>(
        isWriter: Bool,
        _ value: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value {
        if isWriter || isReplicaAvoided, !isPrimaryAway {
            do { return try await atPrimary(value) } catch is PrimaryAway {}
        }
        if !isPrimaryAway {
            if let head = await question.ask() { noteCommitted(head) } else { losePrimary() }
        }
        do {
            return try await whileAnswering(replicaQuestion, replica) { [self] lease in
                try await atReplica(lease, value, position.known)
            }
        } catch is NoAnswer {
            if let read = try await instead(value) { return read }
            throw PostgreSQLError(.disconnected, "neither the primary server nor the replica answers")
        } catch let error as ReplicaBehind {
            if let read = try await instead(value) { return read }
            throw CatalogError.behind(head: error.head.token, wanted: position.known)
        } catch let error as PostgreSQLError where [.disconnected, .conflict, .schema].contains(error.kind) {
            // The schema: the library was created or upgraded a moment ago, and the replica does not show that yet.
            if let read = try await instead(value) { return read }
            throw error
        }
    }

    /// Reads at the primary server because the replica does not serve; nil if that is away too.
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

    /// True if reads go to the primary server for now. Looks at the replica from time to time.
    private var isReplicaAvoided: Bool {
        let (isAvoided, looks) = state.withLock { state in
            guard state.isReplicaAvoided, .now() >= state.nextLook else { return (state.isReplicaAvoided, false) }
            state.nextLook = .now() + .milliseconds(Int(limits.retry))
            return (true, true)
        }
        if looks {
            let known = position.known
            position.lookOnce { [self] shown in
                if shown >= known { state.withLock { $0.isReplicaAvoided = false } }
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
                        position.show(head.sequence)
                        return .value(value)
                    }
                }
                switch outcome {
                case .value(let value):
                    state.withLock { $0.replicaReads += 1 }
                    return value
                case .behind(let head):
                    // Another connection, which is to another replica, has shown it already.
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
                // The server has ended the connection, or the transaction because of what it replays: reading changes
                // nothing, and is repeated.
                guard error.kind == .disconnected || error.kind == .conflict, attempts < 2 else { throw error }
            }
        }
    }

    private static let mostAttempts = 4

    /// Waits until reads have a sequence that a client asks for.
    ///
    /// - Returns: false if they do not have it in time
    func wait(for sequence: Int64, milliseconds: Int64, isWriter: Bool) async -> Bool {
        if position.shown >= sequence { return true }
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
            "server": .string(location), "sequence": .int(position.shown), "reads": JSON(state.replicaReads),
            "readsAtPrimary": JSON(state.primaryReads), "isUsed": .bool(!state.isReplicaAvoided),
            "isPrimaryAway": .bool(state.isPrimaryAway),
            "servers": .array(replica.servers.subtracting([state.primaryServer ?? ""]).sorted().map { .string($0) }),
        ]
    }

    func close() {
        position.close()
        question.close()
        replicaQuestion.close()
        search.sync { $0.close() }
        replica.close()
    }
}
