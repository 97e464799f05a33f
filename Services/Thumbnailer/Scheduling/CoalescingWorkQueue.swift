import Basics
import JSONValue
import Contracts
import Synchronization

/// Runs work once for all callers that request it at the same time, within a limit. Queued work of one group runs
/// together as a batch.
///
/// Cancelling one caller does not affect the others. When the last one has gone, work that has not started is dropped,
/// and a batch that has no callers left is cancelled. Prefetch yields to interactive work: it starts after it, and
/// leaves one slot free while interactive requests keep coming.
final class CoalescingWorkQueue<Key: Hashable & Sendable, Group: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, RPCError>
    private typealias WorkID = SingleFlightTable<Key>.WorkID

    private let work: @Sendable ([Key]) async -> [Outcome]
    private let group: @Sendable (Key) -> Group
    private let width: Int
    private let clock: MonotonicClock
    private let state: Mutex<State>
    /// Yields when work may be ready to start.
    private let ticks: AsyncStream<Void>
    private let ticking: AsyncStream<Void>.Continuation

    /// The time after the last interactive request during which a slot is kept free, in microseconds.
    private static var presence: Int64 { 1_000_000 }

    private struct Batch: Sendable {
        let number: UInt64
        let entries: [(id: WorkID, key: Key)]
        let priority: WorkPriority
        /// Ends when no caller waits any more.
        let abandoned: AsyncStream<Never>
    }

    private struct State {
        var table: SingleFlightTable<Key>
        var due: GroupedPriorityQueue<WorkID, Group>
        var keys: [WorkID: Key] = [:]
        var waiters: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
        /// The executions of each batch that have callers waiting.
        var wanted: [UInt64: Set<WorkID>] = [:]
        var abandon: [UInt64: AsyncStream<Never>.Continuation] = [:]
        var batches: [WorkID: UInt64] = [:]
        var nextWaiter: UInt64 = 0
        var nextBatch: UInt64 = 0
        var running = 0
        var prefetching = 0
        /// The number of prefetch items about to be queued.
        var arriving = 0
        var lastInteractive = Int64.min
        var isStopped = false
    }

    /// - Parameters:
    ///   - limit: the most executions queued or running; above it callers get `busy`
    ///   - width: the most batches running at a time
    ///   - batch: the most items in one batch
    ///   - group: returns the group of a key; items of one group may run together
    ///   - work: runs items of one group and returns an outcome for each; cancelled when no caller waits any more
    init(
        limit: Int,
        width: Int,
        batch: Int = 1,
        clock: MonotonicClock = .system,
        group: @escaping @Sendable (Key) -> Group,
        work: @escaping @Sendable ([Key]) async -> [Outcome]
    ) {
        self.work = work
        self.group = group
        self.width = max(1, width)
        self.clock = clock
        state = Mutex(State(table: SingleFlightTable(limit: limit), due: GroupedPriorityQueue(batch: batch)))
        (ticks, ticking) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The numbers of executions queued or running, executions queued, and callers that joined an existing execution.
    var metrics: (count: Int, due: Int, joinCount: Int) {
        state.withLock { ($0.table.count, $0.due.count, $0.table.joinCount) }
    }

    /// Returns the outcome of the work, run for this caller or for an earlier one.
    ///
    /// - Throws: the error of the work; `busy` if the limit is reached; `user_cancelled`
    func value(_ key: Key, priority: WorkPriority = .interactive) async throws(RPCError) -> Value {
        try await value(key, priority: priority, isAnnounced: false)
    }

    private func value(
        _ key: Key,
        priority: WorkPriority,
        isAnnounced: Bool
    ) async throws(RPCError) -> Value {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                enter(key, priority, waiter: waiter, isAnnounced: isAnnounced, continuation)
            }
        } onCancel: {
            removeWaiter(waiter)
        }
        return try outcome.get()
    }

    /// Returns the outcomes of several prefetch items. None starts before all are queued, so that those of one group
    /// run together.
    func values(_ keys: [Key]) async -> [Outcome] {
        state.withLock { $0.arriving += keys.count }
        return await withTaskGroup(of: (Int, Outcome).self) { group in
            for (index, key) in keys.enumerated() {
                group.addTask {
                    do throws(RPCError) {
                        return (index, .success(try await self.value(key, priority: .prefetch, isAnnounced: true)))
                    } catch {
                        return (index, .failure(error))
                    }
                }
            }
            var outcomes = keys.map { _ in Outcome.failure(Self.cancelled) }
            for await (index, outcome) in group { outcomes[index] = outcome }
            return outcomes
        }
    }

    /// Returns true if the work is queued or running.
    func isUnderWay(_ key: Key) -> Bool { state.withLock { $0.table.holds(key) } }

    /// Runs queued work until the task is cancelled; then waiting callers get `interrupted`.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await _ in ticks {
                while let batch = begin() { group.addTask { await self.perform(batch) } }
            }
            group.cancelAll()
        }
        let left = state.withLock { state in
            state.isStopped = true
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for continuation in left { continuation.resume(returning: .failure(Self.stopping)) }
    }

    private static var stopping: RPCError { ErrorCode.interrupted.error("the service is stopping; try again") }
    private static var cancelled: RPCError { ErrorCode.userCancelled.error("the request was cancelled") }

    private func enter(
        _ key: Key,
        _ priority: WorkPriority,
        waiter: UInt64,
        isAnnounced: Bool,
        _ continuation: CheckedContinuation<Outcome, Never>
    ) {
        let now = clock.nowMicroseconds()
        let refusal: RPCError? = state.withLock { state in
            if isAnnounced { state.arriving -= 1 }
            if Task.isCancelled { return Self.cancelled }
            if state.isStopped { return Self.stopping }
            if priority == .interactive { state.lastInteractive = now }
            switch state.table.join(key, waiter: waiter) {
            case .full:
                return ErrorCode.busy.error(
                    "\(state.table.limit) renditions are queued or being made; try again later"
                )
            case .joined(let id):
                state.due.raisePriority(id, to: priority)
            case .begun(let id):
                state.keys[id] = key
                state.due.add(id, to: group(key), priority: priority)
            }
            state.waiters[waiter] = continuation
            return nil
        }
        if let refusal { continuation.resume(returning: .failure(refusal)) }
        ticking.yield()
    }

    private func removeWaiter(_ waiter: UInt64) {
        let continuation = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
            guard let continuation = state.waiters.removeValue(forKey: waiter) else { return nil }
            guard let id = state.table.removeWaiter(waiter: waiter) else { return continuation }
            if state.due.remove(id) {
                state.keys[id] = nil
                _ = state.table.finish(id)
            } else if let batch = state.batches[id] {
                state.wanted[batch]?.remove(id)
                if state.wanted[batch]?.isEmpty == true { state.abandon.removeValue(forKey: batch)?.finish() }
            }
            return continuation
        }
        continuation?.resume(returning: .failure(Self.cancelled))
    }

    /// Removes the next batch from the queue.
    private func begin() -> Batch? {
        let now = clock.nowMicroseconds()
        return state.withLock { state in
            let arePeopleThere = state.lastInteractive != .min && now - state.lastInteractive < Self.presence
            let prefetchWidth = arePeopleThere ? max(1, width - 1) : width
            let mayPrefetch = state.arriving == 0 && state.prefetching < prefetchWidth
            guard state.running < width, let (ids, priority) = state.due.next(mayPrefetch ? .prefetch : .interactive)
            else {
                return nil
            }
            state.nextBatch += 1
            state.running += 1
            if priority == .prefetch { state.prefetching += 1 }
            let (abandoned, abandon) = AsyncStream<Never>.makeStream()
            state.abandon[state.nextBatch] = abandon
            state.wanted[state.nextBatch] = Set(ids)
            var entries: [(id: WorkID, key: Key)] = []
            for id in ids {
                state.batches[id] = state.nextBatch
                if let key = state.keys.removeValue(forKey: id) { entries.append((id, key)) }
            }
            return Batch(number: state.nextBatch, entries: entries, priority: priority, abandoned: abandoned)
        }
    }

    private func perform(_ batch: Batch) async {
        let outcomes = await withTaskGroup(of: [Outcome]?.self) { group in
            group.addTask { await self.work(batch.entries.map(\.key)) }
            group.addTask {
                for await _ in batch.abandoned {}
                return nil
            }
            // No caller waits any more: cancel the work, but keep its slot until it has really ended.
            let first = await group.next() ?? nil
            group.cancelAll()
            await group.waitForAll()
            return first ?? []
        }
        let missing = Outcome.failure(Task.isCancelled ? Self.stopping : Self.cancelled)
        let ready = state.withLock { state in
            state.abandon.removeValue(forKey: batch.number)?.finish()
            state.wanted[batch.number] = nil
            state.running -= 1
            if batch.priority == .prefetch { state.prefetching -= 1 }
            return batch.entries.enumerated().flatMap { index, entry in
                state.batches[entry.id] = nil
                let outcome = index < outcomes.count ? outcomes[index] : missing
                return state.table.finish(entry.id).compactMap { waiter in
                    state.waiters.removeValue(forKey: waiter).map { ($0, outcome) }
                }
            }
        }
        ticking.yield()
        for (continuation, outcome) in ready { continuation.resume(returning: outcome) }
    }
}
