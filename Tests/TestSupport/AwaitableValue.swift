import Synchronization

/// A value that several tasks of a test write to and others wait for.
public final class AwaitableValue<Value: Sendable>: Sendable {
    private struct Waiter {
        let isEnough: @Sendable (Value) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var value: Value
        var waiters: [Int: Waiter] = [:]
        var lastID = 0

        /// Removes and returns the waiters whose condition is met.
        mutating func removeReady() -> [CheckedContinuation<Void, Never>] {
            let ready = waiters.filter { $0.value.isEnough(value) }
            for id in ready.keys { waiters[id] = nil }
            return ready.values.map(\.continuation)
        }
    }

    private let state: Mutex<State>

    /// Creates the value.
    public init(_ value: Value) { state = Mutex(State(value: value)) }

    /// Reads or changes the value and resumes the waiters whose condition is then met.
    public func withLock<Result: Sendable>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        let (result, freed) = try state.withLock { state in
            let result = try body(&state.value)
            return (result, state.removeReady())
        }
        for continuation in freed { continuation.resume() }
        return result
    }

    /// Waits until the value meets the condition, or until the task is cancelled because of the test's time limit.
    public func wait(until isEnough: @escaping @Sendable (Value) -> Bool) async {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let freed = state.withLock { state in
                    state.waiters[id] = Waiter(isEnough: isEnough, continuation: continuation)
                    if Task.isCancelled, let waiter = state.waiters.removeValue(forKey: id) {
                        return [waiter.continuation]
                    }
                    return state.removeReady()
                }
                for continuation in freed { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
        }
    }

    /// The current value.
    public var current: Value { state.withLock { $0.value } }
}
