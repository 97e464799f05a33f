import Contracts
import Messaging
import Synchronization

/// Does each piece of work once for all who ask for it at the same time, within a bound; pieces of one group that are
/// due together are done together.
///
/// One who is cancelled leaves the others in peace; when all have gone, work that has not begun is dropped, and work
/// that nobody of its batch waits for any more is cancelled. Prefetch gives way: it is begun after what people wait for,
/// and leaves one place free while people are asking.
final class SharedWork<Key: Hashable & Sendable, Group: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, RPCError>
    private typealias FlightID = FlightTable<Key>.FlightID

    private let work: @Sendable ([Key]) async -> [Outcome]
    private let group: @Sendable (Key) -> Group
    private let width: Int
    private let clock: MonotonicClock
    private let state: Mutex<State>
    /// Something may be begun.
    private let ticks: AsyncStream<Void>
    private let ticking: AsyncStream<Void>.Continuation

    /// People who asked within this time are taken to be still there, in microseconds.
    private static var presence: Int64 { 1_000_000 }

    private struct Batch: Sendable {
        let number: UInt64
        let flights: [(id: FlightID, key: Key)]
        let priority: WorkPriority
        /// Ends when nobody waits any more.
        let abandoned: AsyncStream<Never>
    }

    private struct State {
        var table: FlightTable<Key>
        var due: DueTable<FlightID, Group>
        var keys: [FlightID: Key] = [:]
        var waiters: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
        /// The flights of each batch that somebody still waits for.
        var wanted: [UInt64: Set<FlightID>] = [:]
        var abandon: [UInt64: AsyncStream<Never>.Continuation] = [:]
        var batches: [FlightID: UInt64] = [:]
        var nextWaiter: UInt64 = 0
        var nextBatch: UInt64 = 0
        var running = 0
        var prefetching = 0
        /// Pieces of prefetch that are about to be put on the line.
        var arriving = 0
        var lastPeople = Int64.min
        var isStopped = false
    }

    /// - Parameters:
    ///   - limit: pieces of work queued or under way; above it the answer is `busy`
    ///   - width: batches under way at a time
    ///   - batch: pieces done together at most
    ///   - group: which pieces may be done together
    ///   - work: does pieces of one group, one outcome each; cancelled when nobody waits for any of them
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
        state = Mutex(State(table: FlightTable(limit: limit), due: DueTable(batch: batch)))
        (ticks, ticking) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Work queued or under way, work queued, and how often one was joined instead of begun.
    var figures: (count: Int, due: Int, joins: Int) {
        state.withLock { ($0.table.count, $0.due.count, $0.table.joins) }
    }

    /// The outcome of the work, done for this caller or for one who asked before, and whether it was joined.
    ///
    /// - Throws: what the work throws; `busy` where too much is under way; `user_cancelled`.
    func value(_ key: Key, priority: WorkPriority = .people) async throws(RPCError) -> Value {
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
            leave(waiter)
        }
        return try outcome.get()
    }

    /// The outcomes of several pieces of prefetch; none of them is begun before all are on the line, so that those of
    /// one group are done together.
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

    /// Whether the work is queued or under way.
    func isUnderWay(_ key: Key) -> Bool { state.withLock { $0.table.holds(key) } }

    /// Carries out the work until the task is cancelled; then whoever waits is told `interrupted`.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await _ in ticks {
                while let batch = begin() { group.addTask { await self.carryOut(batch) } }
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

    private static var stopping: RPCError { Refusal.interrupted.error("the service is stopping; ask again") }
    private static var cancelled: RPCError { Refusal.userCancelled.error("the request was cancelled") }

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
            if priority == .people { state.lastPeople = now }
            switch state.table.join(key, waiter: waiter) {
            case .full:
                return Refusal.busy.error(
                    "\(state.table.limit) pictures are being made or wait for it; ask again a little later"
                )
            case .joined(let id):
                state.due.raise(id, to: priority)
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

    private func leave(_ waiter: UInt64) {
        let continuation = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
            guard let continuation = state.waiters.removeValue(forKey: waiter) else { return nil }
            guard let id = state.table.leave(waiter: waiter) else { return continuation }
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

    /// Takes the next batch off the line.
    private func begin() -> Batch? {
        let now = clock.nowMicroseconds()
        return state.withLock { state in
            let arePeopleThere = state.lastPeople != .min && now - state.lastPeople < Self.presence
            let room = arePeopleThere ? max(1, width - 1) : width
            let mayPrefetch = state.arriving == 0 && state.prefetching < room
            guard state.running < width, let (ids, priority) = state.due.next(mayPrefetch ? .prefetch : .people) else {
                return nil
            }
            state.nextBatch += 1
            state.running += 1
            if priority == .prefetch { state.prefetching += 1 }
            let (abandoned, abandon) = AsyncStream<Never>.makeStream()
            state.abandon[state.nextBatch] = abandon
            state.wanted[state.nextBatch] = Set(ids)
            var flights: [(id: FlightID, key: Key)] = []
            for id in ids {
                state.batches[id] = state.nextBatch
                if let key = state.keys.removeValue(forKey: id) { flights.append((id, key)) }
            }
            return Batch(number: state.nextBatch, flights: flights, priority: priority, abandoned: abandoned)
        }
    }

    private func carryOut(_ batch: Batch) async {
        let outcomes = await withTaskGroup(of: [Outcome]?.self) { group in
            group.addTask { await self.work(batch.flights.map(\.key)) }
            group.addTask {
                for await _ in batch.abandoned {}
                return nil
            }
            // Nobody waits: cancel, but hold the place until the work has really ended.
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
            return batch.flights.enumerated().flatMap { index, flight in
                state.batches[flight.id] = nil
                let outcome = index < outcomes.count ? outcomes[index] : missing
                return state.table.finish(flight.id).compactMap { waiter in
                    state.waiters.removeValue(forKey: waiter).map { ($0, outcome) }
                }
            }
        }
        ticking.yield()
        for (continuation, outcome) in ready { continuation.resume(returning: outcome) }
    }
}
