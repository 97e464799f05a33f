import Basics
import PostgreSQL
import Synchronization

/// Reads the newest sequence of a server, once for all reads that wait for it.
final class ServerHead: Sendable {
    private struct State {
        var isReading = false
        var waiting: [Promise<Int64?>] = []
    }

    /// The milliseconds without a reply of the server after which the connection is ended.
    private static let replyTimeout: Int32 = 1000

    private let access: PostgreSQLAccess
    private let state = Mutex(State())
    /// The maximum time that a caller waits.
    private let timeout: Duration

    /// - Parameter timeout: milliseconds after which a server that does not answer counts as not available
    init(_ address: String, label: String, timeout: Int64) {
        access = PostgreSQLAccess(
            PostgreSQLSession(address, connectMilliseconds: Int64(Self.replyTimeout)),
            label: label
        )
        self.timeout = .milliseconds(timeout)
    }

    /// Returns the newest sequence, read after the call; nil if the server does not answer in time.
    func readSequence() async -> Int64? {
        let promise = Promise<Int64?>()
        begin(promise)
        let timer = Task { [timeout] in
            if await TaskDelay.timeout(timeout) { promise.fulfill(nil) }
        }
        defer { timer.cancel() }
        return await promise.value()
    }

    /// Begins a read without waiting for the reply, so that there is a connection to a server that answers.
    func refresh() { begin(Promise()) }

    private func begin(_ promise: Promise<Int64?>) {
        let starts = state.withLock { state in
            state.waiting.append(promise)
            defer { state.isReading = true }
            return !state.isReading
        }
        if starts { access.async { [self] in readForWaiters($0) } }
    }

    private func readForWaiters(_ session: PostgreSQLSession) {
        while true {
            let waiters = state.withLock { state in
                defer { state.waiting = [] }
                if state.waiting.isEmpty { state.isReading = false }
                return state.waiting
            }
            if waiters.isEmpty { return }
            var head: Int64?
            do {
                let connection = try session.connect()
                let sql = HistoryStore.newestSequenceQuery
                head = try connection.execute(sql, withinMilliseconds: Self.replyTimeout).int64(0, 0)
            } catch {
                session.close()
            }
            for promise in waiters { promise.fulfill(head) }
        }
    }

    /// Ends the connection if its server satisfies a condition.
    func disconnect(where matches: (_ server: String) -> Bool) { access.disconnect(where: matches) }

    func close() { access.sync { $0.close() } }
}
