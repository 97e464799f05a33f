import Basics
import Contracts
import Hosting
import JSONValue
import Synchronization

/// Runs work once for all callers that request it at the same time, in the order of a ``CoalescingPriorityQueue``.
///
/// Cancelling one caller does not affect the others. When the last caller of an item leaves, an item that has not
/// started is dropped, and a batch without callers is cancelled.
final class CoalescingWorkQueue<Key: Hashable & Sendable, Group: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, RPCError>
    private typealias Queue = CoalescingPriorityQueue<Key, Group, Promise<Outcome>>

    private struct State {
        var queue: Queue
        /// The cancellation of each running batch.
        var cancellations: [UInt64: CancellationSource] = [:]
        var isStopped = false
    }

    private let work: @Sendable ([Key]) async -> [Outcome?]
    private let group: @Sendable (Key) -> Group
    private let clock: MonotonicClock
    private let state: Mutex<State>
    /// Yields when work may be ready to start.
    private let ticks: AsyncStream<Void>
    private let ticking: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - limit: the maximum number of items queued or running; further callers get `busy`
    ///   - maxBatches: the maximum number of batches running at a time
    ///   - batchSize: the maximum number of items in one batch
    ///   - group: returns the group of a key; items of one group may run together
    ///   - work: runs items of one group and returns an outcome for each, nil for those that it leaves to another batch
    ///     because this one took too long; cancelled when no caller is waiting
    init(
        limit: Int,
        maxBatches: Int,
        batchSize: Int = 1,
        clock: MonotonicClock = .system,
        group: @escaping @Sendable (Key) -> Group,
        work: @escaping @Sendable ([Key]) async -> [Outcome?]
    ) {
        self.work = work
        self.group = group
        self.clock = clock
        state = Mutex(State(queue: Queue(limit: limit, maxBatches: maxBatches, batchSize: batchSize)))
        (ticks, ticking) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The numbers of items queued or running, of items queued, and of callers that joined existing work.
    var metrics: (count: Int, due: Int, joinCount: Int) {
        state.withLock { ($0.queue.count, $0.queue.queuedCount, $0.queue.joinCount) }
    }

    /// Returns true if the work is queued or running.
    func isUnderWay(_ key: Key) -> Bool { state.withLock { $0.queue.canJoin(key) } }

    /// Returns the outcome of work that is run for this caller or for an earlier one. The client is that of the current
    /// task.
    ///
    /// - Parameter owner: the client if it may use only a part of the queue; nil for all others
    /// - Throws: the error of the work; `busy` if the limit is reached; `user_cancelled`
    func value(
        _ key: Key,
        urgency: RequestUrgency = .interactive,
        owner: String? = nil
    ) async throws(RPCError) -> Value {
        let waiter = Promise<Outcome>()
        let ticket = enter([(key, waiter)], urgency, owner)[0]
        return try await outcome(of: ticket, waiter).get()
    }

    /// Returns the outcomes of several prefetch items. All are queued before one starts, so that those of one group
    /// run together.
    func values(_ keys: [Key]) async -> [Outcome] {
        let entries = keys.map { ($0, Promise<Outcome>()) }
        var outcomes: [Outcome] = []
        // If the task is cancelled, this wait and the following ones end at once.
        for (ticket, entry) in zip(enter(entries, .prefetch), entries) {
            outcomes.append(await outcome(of: ticket, entry.1))
        }
        return outcomes
    }

    private func outcome(of ticket: Queue.Ticket?, _ waiter: Promise<Outcome>) async -> Outcome {
        await waiter.value { [self] in
            guard let ticket else { return }
            state.withLock { state in state.queue.leave(ticket).flatMap { state.cancellations[$0] } }?.cancel()
            waiter.fulfill(.failure(.requestCancelled))
        }
    }

    /// Adds waiters. The promise of a waiter that is refused is fulfilled, and its ticket is nil.
    private func enter(
        _ entries: [(key: Key, waiter: Promise<Outcome>)],
        _ urgency: RequestUrgency,
        _ owner: String? = nil
    ) -> [Queue.Ticket?] {
        let now = clock.nowMicroseconds()
        let source = WorkSource.current
        defer { ticking.yield() }
        return state.withLock { state in
            entries.map { key, waiter in
                if Task.isCancelled || state.isStopped {
                    waiter.fulfill(.failure(Task.isCancelled ? .requestCancelled : .serviceIsStopping))
                    return nil
                }
                let entered = state.queue.enter(
                    key,
                    of: group(key),
                    urgency,
                    owner: owner,
                    from: source,
                    waiter: waiter,
                    now: now
                )
                switch entered {
                case .queued(let ticket), .joined(let ticket): return ticket
                case .full:
                    let limit = owner == nil ? state.queue.limit : state.queue.limitPerOwner
                    waiter.fulfill(.failure(.renditionQueueFull(limit: limit)))
                    return nil
                }
            }
        }
    }

    /// Runs queued work until the task is cancelled; then waiting callers get `interrupted`.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await _ in ticks {
                while let (batch, cancellation) = begin() {
                    group.addTask { await self.perform(batch, cancellation) }
                }
            }
            group.cancelAll()
        }
        let waiters = state.withLock { state in
            state.isStopped = true
            return state.queue.removeAll()
        }
        for waiter in waiters { waiter.fulfill(.failure(.serviceIsStopping)) }
    }

    private func begin() -> (Queue.Batch, CancellationSource)? {
        let now = clock.nowMicroseconds()
        return state.withLock { state in
            guard let batch = state.queue.next(now: now) else { return nil }
            let cancellation = CancellationSource()
            state.cancellations[batch.number] = cancellation
            return (batch, cancellation)
        }
    }

    private func perform(_ batch: Queue.Batch, _ cancellation: CancellationSource) async {
        // Cancelled work occupies its slot until it has ended.
        let outcomes = await WorkSource.$current.withValue(batch.source) {
            await cancellation.run { await self.work(batch.keys) }
        }
        let isStopping = Task.isCancelled
        let deferred = outcomes.indices.filter { outcomes[$0] == nil && !isStopping }
        let waiters = state.withLock { state in
            state.cancellations[batch.number] = nil
            return state.queue.finish(batch, deferred: Set(deferred))
        }
        ticking.yield()
        for (index, waiters) in waiters.enumerated() {
            var outcome = (index < outcomes.count ? outcomes[index] : nil) ?? .failure(.requestCancelled)
            if Task.isCancelled, case .failure = outcome { outcome = .failure(.serviceIsStopping) }
            for waiter in waiters { waiter.fulfill(outcome) }
        }
    }
}
