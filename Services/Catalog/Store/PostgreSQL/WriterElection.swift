import Dispatch
import Glibc
import PostgreSQL
import Storage
import Synchronization

/// The election of the writer among several catalogs of one library: its session holds an advisory lock of the server.
///
/// A catalog that takes over raises the epoch in the library's row. Every commit checks the epoch, so a catalog that
/// was suspended meanwhile, and does not know of the new writer yet, cannot commit. The writer renews a date in the
/// database; if the date becomes too old, another catalog ends the session that holds the lock, and takes over.
final class WriterElection: Sendable {
    /// Intervals and limits.
    struct Limits: Sendable {
        /// Seconds between two renewals of the date.
        var renewal = 2.0
        /// Seconds after which a writer that has not renewed the date is replaced.
        var expiry = 10.0
        /// The milliseconds for which a catalog waits for a notification of the server before it reads again.
        var wait: Int32 = 200
        /// The maximum number of records, and of their bytes, that are read together.
        var records = 500
        var bytes = 4 << 20
    }

    private struct State {
        var durability = PostgreSQLDurability()
        var role = Role.standby(writer: "unknown")
        var connection = Connection.answering
        var epoch: Int64?
        var isStopping = false
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var nextWaiter = 0
    }

    private let address: String
    private let limits: Limits
    /// The name of this catalog for the others.
    private let name: String
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "postgresql election")
    private let onQueue: QueueState
    /// Receives the server that answers; nil if none does.
    private let onServer: @Sendable (_ server: String?) -> Void

    /// The state that belongs to the queue: the session that holds the lock.
    private final class QueueState: @unchecked Sendable {
        // Unchecked: used on the queue only.
        var session: PostgreSQLSession
        /// The session to a replica, which is followed while the server does not answer; nil without one.
        let replica: PostgreSQLSession?
        var isListening = false
        var holdsLock = false
        var renewed = DispatchTime(uptimeNanoseconds: 0)

        init(_ session: PostgreSQLSession, replica: PostgreSQLSession?) {
            self.session = session
            self.replica = replica
        }
    }

    /// - Parameters:
    ///   - replica: the address of a replica, which is followed while the server does not answer; nil if there is none
    ///   - onServer: receives the server whenever it has answered; nil if none does
    init(
        _ address: String,
        replica: String? = nil,
        limits: Limits = Limits(),
        onServer: @escaping @Sendable (_ server: String?) -> Void = { _ in }
    ) {
        self.address = address
        self.limits = limits
        self.onServer = onServer
        onQueue = QueueState(PostgreSQLSession(address), replica: replica.map { PostgreSQLSession($0) })
        var host = [CChar](repeating: 0, count: 256)
        gethostname(&host, 255)
        let bytes = host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        name = "\(String(decoding: bytes, as: UTF8.self)), process \(getpid())"
    }

    var role: Role { state.withLock { $0.role } }

    /// The servers that answered the last attempt of this catalog.
    var connection: Connection { state.withLock { $0.connection } }

    /// The newest epoch that this catalog has read; nil before the first one.
    var epoch: Int64? { state.withLock { $0.epoch } }

    /// The settings of the server when this catalog connected to it.
    var durability: PostgreSQLDurability { state.withLock { $0.durability } }

    /// The reason why this catalog does not write; nil if it does.
    var refusal: CatalogError? {
        guard case .standby(let writer) = role else { return nil }
        return .standby(writer: writer)
    }

    /// Returns the statement that fails in the transaction of a catalog that is no longer the writer.
    ///
    /// - Throws: ``CatalogError/standby(writer:)``
    func check() throws -> String {
        switch role {
        case .writer(let epoch): return "SELECT require_epoch(\(epoch))"
        case .standby(let writer): throw CatalogError.standby(writer: writer)
        }
    }

    // MARK: Opening

    /// Tries to become the writer, and carries out the first transaction of the library.
    ///
    /// - Parameters:
    ///   - renews: false if there is no call of ``run(_:)``: then no other catalog takes over while the connection
    ///     lasts
    ///   - body: called with true in a transaction of the new writer, else with false in one that reads
    func open<Value>(
        renews: Bool = true,
        _ body: (SQLConnection, _ isWriter: Bool) throws -> Value
    ) throws -> Value {
        try queue.sync {
            let connection = SQLConnection(onQueue.session)
            do throws(PostgreSQLError) {
                let durability = try PostgreSQLDurability(onQueue.session.connect())
                state.withLock { $0.durability = durability }
            } catch {
                guard error.kind == .disconnected, let replica = onQueue.replica else { throw error }
                return try open(at: replica, because: error, body)
            }
            if !renews { try onQueue.session.connected().execute(script: Self.keepalives) }
            guard try tryLock(waiting: true) else {
                let value = try onQueue.session.inReading { try body($0, false) }
                try readWriter()
                return value
            }
            var value: Value?
            var epoch: Int64 = 0
            try connection.inImmediateTransaction {
                value = try body(connection, true)
                epoch = try raiseEpoch(connection, allowsMoved: !renews)
                if !renews { try connection.run("UPDATE safelight_writer SET renewed = 'infinity'") }
            }
            guard let value else { throw PostgreSQLError(.statement, "a transaction has no result") }
            set(.writer(epoch: epoch))
            return value
        }
    }

    /// Reads the library at the replica, because the server does not answer; this catalog is a standby until it does.
    ///
    /// - Throws: the error of the server, if the replica does not answer either
    private func open<Value>(
        at replica: PostgreSQLSession,
        because error: PostgreSQLError,
        _ body: (SQLConnection, _ isWriter: Bool) throws -> Value
    ) throws -> Value {
        onServer(nil)
        do {
            let value = try replica.inReading { database in
                try PostgreSQLSchema.check(database)
                return try body(database, false)
            }
            set(.standby(writer: "unknown: the database server does not answer"))
            return value
        } catch let other as PostgreSQLError where other.kind == .disconnected {
            throw error
        }
    }

    /// Tries to acquire the lock. With `isWaiting` it waits up to a second, because the server may not have detected
    /// yet that the last catalog has ended.
    private func tryLock(waiting isWaiting: Bool = false) throws -> Bool {
        let connection = try onQueue.session.connected()
        if isWaiting {
            try connection.execute(script: "SET lock_timeout = '\(Self.lockMilliseconds)ms'")
            defer { try? connection.execute(script: "RESET lock_timeout") }
            do throws(PostgreSQLError) {
                _ = try connection.execute("SELECT pg_advisory_lock(\(Self.lock))")
                onQueue.holdsLock = true
            } catch {
                guard error.kind == .conflict else { throw error }
                onQueue.holdsLock = false
            }
        } else {
            onQueue.holdsLock = try connection.execute("SELECT pg_try_advisory_lock(\(Self.lock))").int64(0, 0) != 0
        }
        return onQueue.holdsLock
    }

    /// The numbers of the advisory lock: the table's identifier makes it one of this library.
    private static let lock = "\(lockClass), 'library'::regclass::oid::integer"
    private static let lockMilliseconds = 1000

    private static let lockClass = 0x5AFE

    /// Raises the epoch and records this catalog as the writer.
    ///
    /// - Parameter allowsMoved: true to raise it even if the library was moved to a file
    private func raiseEpoch(_ connection: SQLConnection, allowsMoved: Bool = false) throws -> Int64 {
        let raised = "UPDATE library SET epoch = epoch + 1 RETURNING epoch"
        guard let epoch = try connection.first(raised, read: { $0.int64(0) }) else {
            throw DamagedRow("the database has no library row")
        }
        try Self.noteWriter(connection, epoch, name, allowsMoved: allowsMoved)
        onQueue.renewed = .now()
        return epoch
    }

    /// Reads which catalog writes.
    private func readWriter() throws {
        let sql = "SELECT name, epoch FROM safelight_writer"
        let writer = try onQueue.session.inReading { try $0.first(sql) { (name: $0.text(0), epoch: $0.int64(1)) } }
        if let writer { state.withLock { $0.epoch = writer.epoch } }
        set(.standby(writer: writer?.name ?? "unknown"))
    }

    private func set(_ role: Role) {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.role = role
            guard case .writer(let epoch) = role else { return [] }
            state.epoch = epoch
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiters { continuation.resume() }
    }

    // MARK: Running

    /// Holds the lock, or follows the writer and waits for the lock, until the task is cancelled.
    ///
    /// - Throws: errors of the follower, after which the catalog cannot continue
    func run(_ follower: Follower) async throws {
        follower.changed(role)
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                queue.async { [self] in continuation.resume(with: Result { try loop(follower) }) }
            }
        } onCancel: {
            state.withLock { $0.isStopping = true }
        }
    }

    private func loop(_ follower: Follower) throws {
        var reportedRole = role
        var failures = 0
        while !state.withLock({ $0.isStopping }) {
            var hasFailed = false
            do {
                if try runPass(follower), let server = onQueue.session.peer?.server { onServer(server) }
                failures = 0
                state.withLock { $0.connection = .answering }
            } catch let error as PostgreSQLError {
                lose("\(error.kind)")
                if error.kind == .disconnected {
                    onServer(nil)
                    let isFollowing = try followReplica(follower)
                    failures += 1
                    // One failure may be the end of a connection; the next attempt connects again.
                    if failures > 1 { state.withLock { $0.connection = isFollowing ? .replicaOnly : .unreachable } }
                } else if error.kind == .readOnly {
                    state.withLock { $0.connection = .readOnly }
                }
                hasFailed = true
            }
            if role != reportedRole {
                reportedRole = role
                follower.changed(reportedRole)
            }
            // The server may be restarting, or refuse each attempt.
            if hasFailed { pause() }
        }
    }

    /// Reads what a replica has replayed since the server was lost.
    ///
    /// - Returns: true if a replica has answered
    private func followReplica(_ follower: Follower) throws -> Bool {
        guard let replica = onQueue.replica else { return false }
        do {
            try catchUp(follower, replica)
            return true
        } catch is PostgreSQLError {
            replica.close()
            return false
        }
    }

    /// Waits for ``Limits/wait`` when there is no connection whose events could be awaited.
    private func pause() { poll(nil, 0, limits.wait) }

    private func lose(_ reason: String) {
        onQueue.session.close()
        (onQueue.isListening, onQueue.holdsLock) = (false, false)
        if case .writer = role { set(.standby(writer: "unknown: the connection is lost (\(reason))")) }
    }

    /// Renews the date of the writer, or takes over if the lock is free, or follows the writer.
    ///
    /// - Returns: true if the server has answered
    private func runPass(_ follower: Follower) throws -> Bool {
        let connection = try onQueue.session.connect()
        if !onQueue.isListening {
            try connection.execute(script: "LISTEN safelight_records")
            onQueue.isListening = true
            let durability = try PostgreSQLDurability(connection)
            state.withLock { $0.durability = durability }
        }
        if onQueue.holdsLock, case .writer(let epoch) = role {
            let isNotified = try !connection.notifications(waiting: limits.wait).isEmpty
            return try renew(epoch) || isNotified
        }
        if try onQueue.holdsLock || tryLock() {
            try takeOver(follower)
        } else {
            try readWriter()
            try endExpiredWriter(connection)
            try catchUp(follower)
            _ = try connection.notifications(waiting: limits.wait)
            try catchUp(follower)
        }
        return true
    }

    /// Renews the date of the writer; returns false if it is too early.
    private func renew(_ epoch: Int64) throws -> Bool {
        guard DispatchTime.now() >= onQueue.renewed + limits.renewal else { return false }
        let connection = SQLConnection(onQueue.session)
        var isOwn = false
        try connection.inImmediateTransaction {
            let sql = "UPDATE safelight_writer SET renewed = clock_timestamp() WHERE epoch = ?"
            isOwn = try connection.runCounting(sql, epoch) == 1
        }
        onQueue.renewed = .now()
        if !isOwn { throw PostgreSQLError(.conflict, "another catalog has taken over") }
        return true
    }

    /// Becomes the writer: no other catalog can commit from now on, so this one first reads the records that it lacks.
    ///
    /// If the server lacks commits that this catalog has read, because a replica was promoted that had not received
    /// them, the library begins another history above their numbers: no sequence is assigned twice, and every token of
    /// the old history is refused. Other catalogs may have read more, so sequences are skipped.
    ///
    /// - Throws: `StorageError.resourceChanged` if commits are missing, or another catalog has begun another history:
    ///   the catalog has to start again, because its memory belongs to the old one. The same if smart albums have other
    ///   rules, which the writer applies at its start. `StorageError.offline` if the library was moved to a file
    private func takeOver(_ follower: Follower) throws {
        let connection = SQLConnection(onQueue.session)
        let known = max(follower.head(), follower.acknowledged)
        var epoch: Int64 = 0
        var stored: Int64 = 0
        try connection.inImmediateTransaction {
            try Self.requireNotMoved(connection)
            let history = HistoryStore(database: connection)
            let head = try history.head()
            stored = head?.sequence ?? 0
            if stored >= known { try require(head, of: follower) }
            guard try !DerivedBackfillStore(database: connection).isNeeded() else {
                throw StorageError.resourceChanged("smart albums have other rules; start the catalog again")
            }
            epoch = try raiseEpoch(connection)
            guard stored < known else { return }
            try history.startNewHistory(library: follower.newHistoryID(), sequence: known + LibraryRestore.gap)
            try UploadStateStore(database: connection).confirmAgain()
        }
        guard stored >= known else {
            throw StorageError.resourceChanged(
                "the database server has lost the changes \(stored + 1) to \(known), so the library begins another "
                    + "history; start the catalog again"
            )
        }
        try catchUp(follower)
        set(.writer(epoch: epoch))
    }

    private func endExpiredWriter(_ connection: PostgreSQLConnection) throws {
        _ = try connection.execute(
            """
            SELECT pg_terminate_backend(l.pid) FROM pg_locks l, safelight_writer w
            WHERE l.locktype = 'advisory' AND l.classid = \(Self.lockClass) AND l.granted
                AND l.objid = 'library'::regclass::oid
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND w.renewed < clock_timestamp() - make_interval(secs => \(limits.expiry))
            """
        )
    }

    private func catchUp(_ follower: Follower, _ other: PostgreSQLSession? = nil) throws {
        let session = other ?? onQueue.session
        while true {
            let after = follower.head()
            let (page, head) = try session.inReading { connection in
                let history = HistoryStore(database: connection)
                let head = try history.head()
                // A replica may not have replayed the current history yet.
                if other == nil, (head?.sequence ?? 0) >= after { try require(head, of: follower) }
                guard (head?.sequence ?? 0) > after else { return (RecordPage(), after) }
                let page = try history.records(
                    after: after,
                    through: .max,
                    count: limits.records,
                    bytes: limits.bytes
                )
                return (page, head?.sequence ?? after)
            }
            guard head > after else { return }
            guard page.records.first?.sequence == after + 1 else {
                throw StorageError.resourceChanged(
                    "the records after \(after) are not in the database any more; start the catalog again"
                )
            }
            try follower.receive(page.records, page.records.last?.sequence ?? after)
        }
    }

    // MARK: Waiting

    /// Waits until this catalog is the writer, or the task is cancelled.
    func waitUntilWriter() async {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if case .writer = state.role { return true }
                    if Task.isCancelled { return true }
                    state.waiting[id] = continuation
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
        }
    }

    /// Releases the lock.
    func close() {
        queue.sync {
            // The server detects the end of a connection with a delay.
            if onQueue.holdsLock { _ = try? onQueue.session.connected().execute("SELECT pg_advisory_unlock_all()") }
            onQueue.session.close()
            onQueue.replica?.close()
        }
        set(.standby(writer: "none: this catalog has stopped"))
    }
}
