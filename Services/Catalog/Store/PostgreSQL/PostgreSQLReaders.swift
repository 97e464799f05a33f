import DequeModule
import Dispatch
import PostgreSQL
import Storage
import Synchronization

/// A connection to PostgreSQL and its queue: libpq blocks, so it is not called on the threads of Swift tasks.
final class PostgreSQLAccess: @unchecked Sendable {
    // Used on the queue only, except for its peer.
    private let session: PostgreSQLSession
    private let queue: DispatchQueue

    init(_ session: PostgreSQLSession, label: String) {
        self.session = session
        queue = DispatchQueue(label: label)
    }

    /// The server of the connection; nil without one.
    var server: String? { session.peer?.server }

    /// Ends the connection if its server satisfies a condition: work that runs on it fails as disconnected, and the
    /// next work connects again.
    func disconnect(where matches: (_ server: String) -> Bool) {
        guard let peer = session.peer, matches(peer.server) else { return }
        peer.disconnect()
        queue.async { [self] in if session.peer === peer { session.close() } }
    }

    func run<Value: Sendable>(
        _ work: @escaping @Sendable (PostgreSQLSession) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in continuation.resume(with: Result { try work(session) }) }
        }
    }

    func async(_ work: @escaping @Sendable (PostgreSQLSession) -> Void) {
        queue.async { [self] in work(session) }
    }

    func sync<Value>(_ work: (PostgreSQLSession) throws -> Value) rethrows -> Value {
        try queue.sync { try work(session) }
    }
}

/// The connections that read from one server. Each read uses one of them alone.
final class PostgreSQLReaders: Sendable {
    /// The maximum number of reads that wait for a connection.
    static let waitingLimit = 4096

    private let all: [PostgreSQLAccess]
    private let readers: Mutex<Readers>

    private struct Readers {
        var idle: [PostgreSQLAccess]
        var waiting: Deque<CheckedContinuation<PostgreSQLAccess, Never>> = []
    }

    /// A running read, with the connection that it currently uses, through which another task can abandon it.
    final class RunningRead: Sendable {
        fileprivate let reader = Mutex<PostgreSQLAccess?>(nil)
    }

    init(_ address: String, count: Int, label: String, isLocal: @escaping @Sendable (String) -> Bool) {
        all = (0..<max(1, count)).map {
            PostgreSQLAccess(PostgreSQLSession(address, isLocal: isLocal), label: "\(label) \($0)")
        }
        readers = Mutex(Readers(idle: all))
    }

    /// Runs work on one of the connections, which it may not use afterwards.
    func run<Value: Sendable>(
        running read: RunningRead? = nil,
        _ work: @escaping @Sendable (PostgreSQLSession) throws -> Value
    ) async throws -> Value {
        let reader = try await acquire()
        read?.reader.withLock { $0 = reader }
        defer {
            read?.reader.withLock { $0 = nil }
            release(reader)
        }
        return try await reader.run(work)
    }

    // MARK: Servers

    /// The servers to which the connections lead.
    var servers: Set<String> { Set(all.compactMap(\.server)) }

    /// Ends the connections whose server satisfies a condition, whether they are in use or not.
    func disconnect(where matches: (_ server: String) -> Bool) {
        for reader in all { reader.disconnect(where: matches) }
    }

    /// Ends the idle connections whose server satisfies a condition.
    func disconnectIdle(where matches: (_ server: String) -> Bool) {
        // A read that takes one of them meanwhile repeats its work.
        for reader in readers.withLock({ $0.idle }) { reader.disconnect(where: matches) }
    }

    /// Abandons a read whose server does not answer, and ends the idle connections to that server.
    func abandon(_ read: RunningRead) {
        let server = read.reader.withLock { reader -> String? in
            guard let reader, let server = reader.server else { return nil }
            reader.disconnect { _ in true }
            return server
        }
        if let server { disconnectIdle { $0 == server } }
    }

    // MARK: Reading

    /// Reads from one snapshot.
    func read<Value: Sendable>(
        running read: RunningRead? = nil,
        _ value: @escaping @Sendable (SQLConnection) throws -> Value
    ) async throws -> Value {
        try await run(running: read) { try $0.inReading(value) }
    }

    private func acquire() async throws(StorageError) -> PostgreSQLAccess {
        let isFull = readers.withLock { $0.waiting.count >= Self.waitingLimit }
        guard !isFull else { throw .busy("\(Self.waitingLimit) reads wait for a connection. Try again.") }
        return await withCheckedContinuation { continuation in
            let reader = readers.withLock { readers -> PostgreSQLAccess? in
                if let reader = readers.idle.popLast() { return reader }
                readers.waiting.append(continuation)
                return nil
            }
            if let reader { continuation.resume(returning: reader) }
        }
    }

    private func release(_ reader: PostgreSQLAccess) {
        let next = readers.withLock { readers in
            let next = readers.waiting.popFirst()
            if next == nil { readers.idle.append(reader) }
            return next
        }
        next?.resume(returning: reader)
    }

    func close() {
        for reader in readers.withLock({ $0.idle }) { reader.sync { $0.close() } }
    }
}

extension PostgreSQLSession {
    /// Reads from one snapshot.
    func inReading<Value>(_ value: (SQLConnection) throws -> Value) throws -> Value {
        try begin(reading: true)
        do {
            let value = try value(SQLConnection(self))
            try commit()
            return value
        } catch {
            rollBack()
            throw error
        }
    }
}
