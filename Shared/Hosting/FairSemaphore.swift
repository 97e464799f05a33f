import Basics
import DequeModule
import Synchronization

/// A limit on concurrent work, with a queue that is round-robin between sources, so that a source with much work does
/// not delay the others.
public final class FairSemaphore<Source: Hashable & Sendable>: Sendable {
    private struct State {
        var permits: Int
        let permitsPerSource: Int
        var running: [Source: Int] = [:]
        var waiting = FairQueue<Source, Waiter>()
        /// The waiting tasks of sources that have all their permits.
        var atLimit: [Source: Deque<Waiter>] = [:]
        var atLimitCount = 0

        /// Acquires a permit; returns false if the source has the maximum.
        mutating func begin(_ source: Source) -> Bool {
            let own = running[source, default: 0]
            guard own < permitsPerSource else { return false }
            permits -= 1
            running[source] = own + 1
            return true
        }

        /// Releases a permit, and returns the waiters that have acquired one now.
        mutating func end(_ source: Source) -> [Waiter] {
            permits += 1
            let remaining = running[source, default: 1] - 1
            running[source] = remaining == 0 ? nil : remaining
            if let next = removeAtLimit(of: source, at: 0) { waiting.append(next, from: source) }
            var started: [Waiter] = []
            while permits > 0, let next = waiting.popFirst() {
                if begin(next.source) { started.append(next) } else { append(next) }
            }
            return started
        }

        mutating func append(_ waiter: Waiter) {
            guard running[waiter.source, default: 0] >= permitsPerSource else {
                return waiting.append(waiter, from: waiter.source)
            }
            atLimit[waiter.source, default: []].append(waiter)
            atLimitCount += 1
        }

        mutating func remove(from source: Source, where condition: (Waiter) -> Bool) -> Waiter? {
            if let waiter = waiting.remove(from: source, where: condition) { return waiter }
            return atLimit[source]?.firstIndex(where: condition).flatMap { removeAtLimit(of: source, at: $0) }
        }

        private mutating func removeAtLimit(of source: Source, at index: Int) -> Waiter? {
            guard let waiter = atLimit[source]?.remove(at: index) else { return nil }
            if atLimit[source]?.isEmpty == true { atLimit[source] = nil }
            atLimitCount -= 1
            return waiter
        }
    }

    private struct Waiter {
        let source: Source
        let promise: Promise<Bool>
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - permits: the maximum number of tasks that work at the same time
    ///   - permitsPerSource: the maximum number of such tasks of one source
    public init(permits: Int, permitsPerSource: Int = .max) {
        state = Mutex(State(permits: permits, permitsPerSource: permitsPerSource))
    }

    /// The number of waiting tasks.
    public var waitingCount: Int { state.withLock { $0.waiting.count + $0.atLimitCount } }

    /// Runs work as soon as there is a permit for it.
    ///
    /// - Returns: the result of the work; nil if the task was cancelled while it waited
    public func withPermit<Value, Failure: Error>(
        for source: Source,
        _ work: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value? {
        guard await acquire(for: source) else { return nil }
        defer { release(source) }
        return try await work()
    }

    private func acquire(for source: Source) async -> Bool {
        let promise: Promise<Bool>? = state.withLock { state in
            if state.permits > 0, state.begin(source) { return nil }
            let waiter = Waiter(source: source, promise: Promise())
            state.append(waiter)
            return waiter.promise
        }
        return await promise?.value { self.cancel(promise, from: source) } ?? true
    }

    /// Removes a cancelled waiter. One that is no longer in the queue has acquired the permit and keeps it.
    private func cancel(_ promise: Promise<Bool>?, from source: Source) {
        state.withLock { $0.remove(from: source) { $0.promise === promise } }?.promise.fulfill(false)
    }

    private func release(_ source: Source) {
        for waiter in state.withLock({ $0.end(source) }) { waiter.promise.fulfill(true) }
    }
}
