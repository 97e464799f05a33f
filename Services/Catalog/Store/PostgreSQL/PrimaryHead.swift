import PostgreSQL
import Synchronization

/// Asks the primary server for the newest sequence, once for all reads that have come meanwhile.
final class PrimaryHead: Sendable {
    private struct State {
        var isAsking = false
        var waiting: [CheckedContinuation<Int64?, Never>] = []
    }

    /// Milliseconds for an answer; a server that needs longer counts as away.
    private static let answer: Int32 = 1000

    private let access: PostgreSQLAccess
    private let state = Mutex(State())

    init(_ address: String) {
        access = PostgreSQLAccess(
            PostgreSQLSession(address, connectMilliseconds: Int64(Self.answer)),
            label: "postgresql head"
        )
    }

    /// Returns the newest sequence at a moment after the call; nil if the server does not answer.
    func ask() async -> Int64? {
        await withCheckedContinuation { continuation in
            let starts = state.withLock { state in
                state.waiting.append(continuation)
                defer { state.isAsking = true }
                return !state.isAsking
            }
            if starts { access.async { [self] in ask($0) } }
        }
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
            for continuation in asking { continuation.resume(returning: head) }
        }
    }

    func close() { access.sync { $0.close() } }
}
