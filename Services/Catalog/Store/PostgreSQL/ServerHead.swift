import Basics
import PostgreSQL
import Synchronization

/// Reads the newest sequence of a server, once for all reads that wait for it.
final class ServerHead: Sendable {
    private struct State {
        var isAsking = false
        var waiting: [Promise<Int64?>] = []
    }

    /// Milliseconds for a reply of the server, after which the connection is ended.
    private static let answer: Int32 = 1000

    private let access: PostgreSQLAccess
    private let state = Mutex(State())
    /// The maximum time that a caller waits.
    private let timeout: Duration

    /// - Parameter timeout: milliseconds after which a server that does not answer counts as not available
    init(_ address: String, label: String, timeout: Int64) {
        access = PostgreSQLAccess(
            PostgreSQLSession(address, connectMilliseconds: Int64(Self.answer)),
            label: label
        )
        self.timeout = .milliseconds(timeout)
    }

    /// Returns the newest sequence at a moment after the call; nil if the server does not answer in time.
    func ask() async -> Int64? {
        let promise = Promise<Int64?>()
        begin(promise)
        let timer = Task { [timeout] in
            if await TaskDelay.timeout(timeout) { promise.fulfill(nil) }
        }
        defer { timer.cancel() }
        return await promise.value()
    }

    /// Asks without waiting for the reply, so that there is a connection to a server that answers.
    func refresh() { begin(Promise()) }

    private func begin(_ promise: Promise<Int64?>) {
        let starts = state.withLock { state in
            state.waiting.append(promise)
            defer { state.isAsking = true }
            return !state.isAsking
        }
        if starts { access.async { [self] in ask($0) } }
    }

    private func ask(_ session: PostgreSQLSession) {
        while true {
            let asking = state.withLock { state in
                defer { state.waiting = [] }
                if state.waiting.isEmpty { state.isAsking = false }
                return state.waiting
            }
            if asking.isEmpty { return }
            var head: Int64?
            do {
                let connection = try session.connect()
                let sql = HistoryStore.newestSequenceQuery
                head = try connection.execute(sql, withinMilliseconds: Self.answer).int64(0, 0)
            } catch {
                session.close()
            }
            for promise in asking { promise.fulfill(head) }
        }
    }

    /// Ends the connection if its server satisfies a condition.
    func disconnect(where isMeant: (_ server: String) -> Bool) { access.disconnect(where: isMeant) }

    func close() { access.sync { $0.close() } }
}
