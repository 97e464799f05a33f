import Synchronization

/// The newest records in memory, and the tasks that wait for the next one. Commits resume them; nothing polls.
final class ChangeLogTail: Sendable {
    /// The records after a position.
    enum Page: Sendable {
        case records([CommittedRecord], last: Int64)
        /// The position is the newest sequence.
        case atHead
        /// The records are older than those in memory; the caller reads them from the database.
        case older
    }

    private struct Waiter {
        let sequence: Int64
        let isClient: Bool
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var head: Int64
        var entries: [CommittedRecord] = []
        /// Entries before this index have been discarded.
        var first = 0
        var bytes = 0
        var isClosed = false
        var nextWaiter: UInt64 = 0
        var waiters: [UInt64: Waiter] = [:]
        /// Waiters whose task was cancelled before they were added.
        var cancelledEarly: Set<UInt64> = []
    }

    private let state: Mutex<State>
    private let maxBytes: Int

    init(head: Int64, maxBytes: Int = 4 << 20) {
        self.maxBytes = maxBytes
        state = Mutex(State(head: head))
    }

    /// The newest committed sequence.
    var head: Int64 { state.withLock { $0.head } }

    /// The number of clients that wait for a record.
    var waiting: Int { state.withLock { state in state.waiters.values.count { $0.isClient } } }

    /// Appends the records of a commit, in order, and resumes the tasks that wait for them.
    func append(_ entries: [CommittedRecord], head: Int64) {
        let woken = state.withLock { state in
            state.entries += entries
            state.bytes += entries.reduce(0) { $0 + $1.bytes.count }
            while state.bytes > maxBytes, state.first < state.entries.count - 1 {
                state.bytes -= state.entries[state.first].bytes.count
                state.first += 1
            }
            if state.first > 64, state.first > state.entries.count / 2 {
                state.entries.removeFirst(state.first)
                state.first = 0
            }
            state.head = max(state.head, head)
            let ready = state.waiters.filter { $0.value.sequence <= state.head }
            for id in ready.keys { state.waiters[id] = nil }
            return ready.values.map(\.continuation)
        }
        for continuation in woken { continuation.resume(returning: true) }
    }

    /// Returns records after a position, up to `limit` bytes but at least one.
    func page(after position: Int64, bytes limit: Int) -> Page {
        state.withLock { state in
            guard position < state.head else { return .atHead }
            guard state.first < state.entries.count, state.entries[state.first].sequence <= position + 1 else {
                return .older
            }
            let start = state.first + Int(position + 1 - state.entries[state.first].sequence)
            var records: [CommittedRecord] = []
            var total = 0
            var last = position
            for entry in state.entries[start...] {
                if !records.isEmpty, total + entry.bytes.count > limit { break }
                records.append(entry)
                total += entry.bytes.count
                last = entry.sequence
            }
            return .records(records, last: last)
        }
    }

    /// Waits until a sequence is committed.
    ///
    /// - Parameter isClient: false for tasks of the service itself, which always wait and are not counted
    /// - Returns: true if the sequence is committed, false if the task was cancelled or the service stops
    func wait(for sequence: Int64, isClient: Bool = true) async -> Bool {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        let isReached = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let result: Bool? = state.withLock { state in
                    if state.head >= sequence { return true }
                    if state.isClosed || state.cancelledEarly.contains(id) { return false }
                    state.waiters[id] = Waiter(sequence: sequence, isClient: isClient, continuation: continuation)
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: id)
                if waiter == nil { state.cancelledEarly.insert(id) }
                return waiter
            }
            waiter?.continuation.resume(returning: false)
        }
        state.withLock { _ = $0.cancelledEarly.remove(id) }
        return isReached
    }

    /// Resumes all waiting tasks with false; later calls of ``wait(for:isClient:)`` do not wait.
    func close() {
        let woken = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [:] }
            return state.waiters.values.map(\.continuation)
        }
        for continuation in woken { continuation.resume(returning: false) }
    }
}

/// A committed record for followers, encoded: the bytes that this catalog has written or, at a standby, read. The flag
/// saves followers from decoding it.
struct CommittedRecord: Sendable {
    let sequence: Int64
    let bytes: [UInt8]
    /// True if the record inserts assets.
    let insertsAssets: Bool
}
