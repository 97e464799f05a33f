import Basics
import Glibc
import PostgreSQL
import Synchronization

/// The newest sequence that a replica has replayed, and the reads that wait for a newer one.
///
/// A replica sends no notification when it has replayed a commit, because it refuses `LISTEN`. While reads wait, one
/// connection reads the head of the library: at once when the catalog learns of a new sequence, then at increasing
/// intervals.
final class ReplicaPosition: Sendable {
    /// The result of a wait.
    enum Answer: Sendable {
        case reached
        /// The time has expired.
        case late
        /// The catalog has known the sequence for longer than the replica may lag.
        case lagging
    }

    private struct Waiter {
        let sequence: Int64
        let end: Int64
        /// The milliseconds for which the replica may lag; nil for any time.
        let lag: Int64?
        /// The time at which the catalog learned of the sequence; nil if it does not know it yet.
        var knownSince: Int64?
        let continuation: CheckedContinuation<Answer, Never>
    }

    private struct State {
        /// The newest sequence that the catalog knows, from its own commits, the primary server, or a read.
        var known: Int64 = 0
        /// The newest sequence that the replica has replayed.
        var replayed: Int64 = 0
        var waiters: [UInt64: Waiter] = [:]
        var lastWaiter: UInt64 = 0
        var cancelledEarly: Set<UInt64> = []
        var isPolling = false
        var isClosed = false
    }

    /// The milliseconds between two reads of the head: at first, at most, and when the replica does not answer.
    private static let intervals: (first: Int64, last: Int64, failed: Int64) = (1, 50, 200)
    /// The maximum time for a reply of the replica, in milliseconds.
    private static let replyTimeout: Int32 = 1000

    private let access: PostgreSQLAccess
    private let state = Mutex(State())
    private let wakeUp = EventDescriptor()

    init(_ address: String) {
        access = PostgreSQLAccess(
            PostgreSQLSession(address, connectMilliseconds: Int64(Self.replyTimeout)),
            label: "postgresql replica position"
        )
    }

    /// The newest sequence that the catalog knows: every later read includes it.
    var known: Int64 { state.withLock { $0.known } }

    /// The newest sequence that the replica has replayed.
    var replayed: Int64 { state.withLock { $0.replayed } }

    /// Records a sequence that the catalog knows.
    func noteCommitted(_ sequence: Int64) {
        let isAwaited = state.withLock { state in
            guard sequence > state.known else { return false }
            state.known = sequence
            return !state.waiters.isEmpty
        }
        if isAwaited { wakeUp.signal() }
    }

    /// Records a sequence that the replica has replayed.
    func noteReplayed(_ sequence: Int64) {
        let ready = state.withLock { state in
            (state.known, state.replayed) = (max(state.known, sequence), max(state.replayed, sequence))
            return Self.takeReady(&state)
        }
        for (continuation, answer) in ready { continuation.resume(returning: answer) }
    }

    /// Waits until the replica has replayed a sequence.
    ///
    /// - Parameters:
    ///   - milliseconds: the maximum time to wait
    ///   - lag: milliseconds for which the replica may lag behind what the catalog knows; nil for any time
    func wait(for sequence: Int64, milliseconds: Int64, lag: Int64?) async -> Answer {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (answer, starts) = state.withLock { state -> (Answer?, Bool) in
                    if state.replayed >= sequence { return (.reached, false) }
                    if state.isClosed || state.cancelledEarly.contains(id) { return (.late, false) }
                    let now = Self.now
                    state.waiters[id] = Waiter(
                        sequence: sequence,
                        end: now + milliseconds,
                        lag: lag,
                        knownSince: state.known >= sequence ? now : nil,
                        continuation: continuation
                    )
                    defer { state.isPolling = true }
                    return (nil, !state.isPolling)
                }
                if let answer { continuation.resume(returning: answer) }
                if starts { access.async { [self] in followHead($0) } } else { wakeUp.signal() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: id)
                if waiter == nil { state.cancelledEarly.insert(id) }
                return waiter
            }
            waiter?.continuation.resume(returning: .late)
        }
        state.withLock { _ = $0.cancelledEarly.remove(id) }
        return answer
    }

    /// Begins to read the head of the replica once, without waiting for the reply.
    ///
    /// - Parameter body: receives the sequence that the replica has replayed; not called if it does not answer
    func readHeadOnce(_ body: @escaping @Sendable (Int64) -> Void) {
        access.async { [self] session in
            guard let sequence = try? head(session) else { return }
            noteReplayed(sequence)
            body(sequence)
        }
    }

    /// Ends the connection if its server satisfies a condition.
    func disconnect(where matches: (_ server: String) -> Bool) { access.disconnect(where: matches) }

    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [:] }
            return state.waiters.values.map(\.continuation)
        }
        for continuation in waiters { continuation.resume(returning: .late) }
        wakeUp.signal()
        access.sync { $0.close() }
    }

    // MARK: Polling

    /// Reads the head repeatedly, until no read waits for it.
    private func followHead(_ session: PostgreSQLSession) {
        var interval = Self.intervals.first
        while true {
            var isAnswered = true
            do { noteReplayed(try head(session)) } catch { isAnswered = false }
            let (expired, isDone) = state.withLock { state in
                let expired = Self.takeExpired(&state)
                if state.waiters.isEmpty { state.isPolling = false }
                return (expired, state.waiters.isEmpty)
            }
            for (continuation, answer) in expired { continuation.resume(returning: answer) }
            if isDone { return }
            if pause(isAnswered ? interval : Self.intervals.failed) {
                interval = Self.intervals.first
            } else {
                interval = min(interval * 2, Self.intervals.last)
            }
        }
    }

    /// Waits for a new sequence or a new waiting read.
    ///
    /// - Parameter milliseconds: the maximum time to wait
    /// - Returns: true if there was one
    private func pause(_ milliseconds: Int64) -> Bool {
        var event = pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&event, 1, Int32(milliseconds)) > 0 else { return false }
        wakeUp.clear()
        return true
    }

    private func head(_ session: PostgreSQLSession) throws -> Int64 {
        do {
            let sql = HistoryStore.newestSequenceQuery
            return try session.connect().execute(sql, withinMilliseconds: Self.replyTimeout).int64(0, 0)
        } catch {
            session.close()
            throw error
        }
    }

    private typealias Answers = [(CheckedContinuation<Answer, Never>, Answer)]

    private static func takeReady(_ state: inout State) -> Answers {
        let ready = state.waiters.filter { $0.value.sequence <= state.replayed }
        for id in ready.keys { state.waiters[id] = nil }
        return ready.values.map { ($0.continuation, .reached) }
    }

    private static func takeExpired(_ state: inout State) -> Answers {
        let now = now
        var answers: Answers = []
        for (id, waiter) in state.waiters {
            var waiter = waiter
            if waiter.knownSince == nil, state.known >= waiter.sequence { waiter.knownSince = now }
            if let since = waiter.knownSince, let lag = waiter.lag, now - since >= lag {
                answers.append((waiter.continuation, .lagging))
            } else if now >= waiter.end {
                answers.append((waiter.continuation, .late))
            } else {
                state.waiters[id] = waiter
                continue
            }
            state.waiters[id] = nil
        }
        return answers
    }

    /// The current time of the monotonic clock in milliseconds.
    private static var now: Int64 { MonotonicClock.system.nowMicroseconds() / 1000 }
}
