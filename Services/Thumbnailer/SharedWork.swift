import Contracts
import Messaging
import Synchronization

/// Does each piece of work once for all who ask for it at the same time, within a bound.
///
/// One who is cancelled leaves the others in peace; when all have gone, the work itself is cancelled.
final class SharedWork<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, RPCError>
    private typealias FlightID = FlightTable<Key>.FlightID

    private let work: @Sendable (Key) async -> Outcome
    private let state: Mutex<State>
    private let begun: AsyncStream<Flight>
    private let beginning: AsyncStream<Flight>.Continuation

    private struct Flight: Sendable {
        let id: FlightID
        let key: Key
        /// Ends when nobody waits any more.
        let abandoned: AsyncStream<Never>
    }

    private struct State {
        var table: FlightTable<Key>
        var waiters: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
        var abandon: [FlightID: AsyncStream<Never>.Continuation] = [:]
        var nextWaiter: UInt64 = 0
        var isStopped = false
    }

    /// - Parameters:
    ///   - limit: pieces of work queued or under way; above it the answer is `busy`
    ///   - work: does one; cancelled when nobody waits for it
    init(limit: Int, work: @escaping @Sendable (Key) async -> Outcome) {
        self.work = work
        state = Mutex(State(table: FlightTable(limit: limit)))
        (begun, beginning) = AsyncStream.makeStream()
    }

    /// Work queued or under way, and how often one was joined instead of begun.
    var figures: (count: Int, joins: Int) {
        state.withLock { ($0.table.count, $0.table.joins) }
    }

    /// The outcome of the work, done for this caller or for one who asked before.
    ///
    /// - Throws: what the work throws; `busy` where too much is under way; `user_cancelled`.
    func value(_ key: Key) async throws(RPCError) -> Value {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                enter(key, waiter: waiter, continuation)
            }
        } onCancel: {
            leave(waiter)
        }
        return try outcome.get()
    }

    /// Carries out the work until the task is cancelled; then whoever waits is told `interrupted`.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await flight in begun {
                group.addTask { await self.carryOut(flight) }
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

    private func enter(_ key: Key, waiter: UInt64, _ continuation: CheckedContinuation<Outcome, Never>) {
        let refusal: RPCError? = state.withLock { state in
            if Task.isCancelled { return Self.cancelled }
            if state.isStopped { return Self.stopping }
            switch state.table.join(key, waiter: waiter) {
            case .full:
                return Refusal.busy.error(
                    "\(state.table.limit) pictures are being made or wait for it; ask again a little later"
                )
            case .joined:
                break
            case .begun(let id):
                let (abandoned, abandon) = AsyncStream<Never>.makeStream()
                state.abandon[id] = abandon
                beginning.yield(Flight(id: id, key: key, abandoned: abandoned))
            }
            state.waiters[waiter] = continuation
            return nil
        }
        if let refusal { continuation.resume(returning: .failure(refusal)) }
    }

    private func leave(_ waiter: UInt64) {
        let continuation = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
            guard let continuation = state.waiters.removeValue(forKey: waiter) else { return nil }
            if let abandoned = state.table.leave(waiter: waiter) {
                state.abandon.removeValue(forKey: abandoned)?.finish()
            }
            return continuation
        }
        continuation?.resume(returning: .failure(Self.cancelled))
    }

    private func carryOut(_ flight: Flight) async {
        let outcome = await withTaskGroup(of: Outcome?.self) { group in
            group.addTask { await self.work(flight.key) }
            group.addTask {
                for await _ in flight.abandoned {}
                return nil
            }
            // Nobody waits: cancel, but hold the place until the work has really ended.
            let first = await group.next() ?? nil
            group.cancelAll()
            await group.waitForAll()
            return first ?? .failure(Task.isCancelled ? Self.stopping : Self.cancelled)
        }
        let continuations = state.withLock { state in
            state.abandon.removeValue(forKey: flight.id)?.finish()
            return state.table.finish(flight.id).compactMap { state.waiters.removeValue(forKey: $0) }
        }
        for continuation in continuations { continuation.resume(returning: outcome) }
    }
}
