import Synchronization

/// Lets nobody pass until a number of tasks stand before it; then it is open.
public final class Gate: Sendable {
    private let state: Mutex<(missing: Int, waiting: [CheckedContinuation<Void, Never>])>

    public init(_ count: Int) {
        state = Mutex((max(0, count), []))
    }

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
