import Basics
import Synchronization

/// A limit on concurrent work, with a queue that is round-robin between sources, so that a source with much work does
/// not delay the others.
public final class FairSemaphore<Source: Hashable & Sendable>: Sendable {
    private struct State {
        var permits: Int
        var waiting = FairQueue<Source, Promise<Bool>>()
    }

    private let state: Mutex<State>

    /// - Parameter permits: the maximum number of tasks that work at the same time
    public init(permits: Int) { state = Mutex(State(permits: permits)) }

    /// The number of waiting tasks.
    public var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Runs work as soon as there is a permit for it.
    ///
    /// - Returns: the result of the work; nil if the task was cancelled while it waited
    public func withPermit<Value, Failure: Error>(
        for source: Source,
        _ work: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value? {
        guard await acquire(for: source) else { return nil }
        defer { release() }
        return try await work()
    }

    private func acquire(for source: Source) async -> Bool {
        let promise: Promise<Bool>? = state.withLock { state in
            if state.permits > 0 {
                state.permits -= 1
                return nil
            }
            let promise = Promise<Bool>()
            state.waiting.append(promise, from: source)
            return promise
        }
        return await promise?.value { self.leave(promise, from: source) } ?? true
    }

    /// Takes a cancelled waiter out of the queue. One that is not there any more has the permit and keeps it.
    private func leave(_ promise: Promise<Bool>?, from source: Source) {
        state.withLock { $0.waiting.remove(from: source) { $0 === promise } }?.fulfill(false)
    }

    private func release() {
        let next: Promise<Bool>? = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.permits += 1 }
            return next
        }
        next?.fulfill(true)
    }
}
