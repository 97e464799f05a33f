import Synchronization

/// A barrier that suspends tasks until a given number of them have arrived; then it stays open.
public final class TaskBarrier: Sendable {
    private let state: Mutex<(missing: Int, waiting: [CheckedContinuation<Void, Never>])>

    /// Creates a barrier that opens when `count` tasks have arrived.
    public init(_ count: Int) {
        state = Mutex((max(0, count), []))
    }

    /// Waits until the barrier is open.
    public func pass() async {
        await withCheckedContinuation { continuation in
            let released = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                state.missing -= 1
                guard state.missing <= 0 else {
                    state.waiting.append(continuation)
                    return []
                }
                defer { state.waiting = [] }
                return state.waiting + [continuation]
            }
            for waiting in released { waiting.resume() }
        }
    }
}
