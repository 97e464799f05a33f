import Basics
import Synchronization

/// One-shot events of tests, signalled and awaited by name.
final class NamedSignals: Sendable {
    private struct State {
        var signaled: Set<String> = []
        var waiters: [(name: String, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    func signal(_ name: String) {
        let waiters = state.withLock { state in
            state.signaled.insert(name)
            let waiters = state.waiters.filter { $0.name == name }
            state.waiters.removeAll { $0.name == name }
            return waiters
        }
        for waiter in waiters { waiter.continuation.resume() }
    }

    func isSignaled(_ name: String) -> Bool { state.withLock { $0.signaled.contains(name) } }

    /// Waits for an event and ignores cancellation, like a handler that does not react to it.
    func wait(_ name: String) async {
        await withCheckedContinuation { continuation in
            let isSignaled = state.withLock { state in
                if state.signaled.contains(name) { return true }
                state.waiters.append((name, continuation))
                return false
            }
            if isSignaled { continuation.resume() }
        }
    }
}

/// Waits until the task is cancelled, like a handler that reacts to it.
func untilCancelled() async throws {
    let gate = NamedSignals()
    await withTaskCancellationHandler {
        await gate.wait("cancelled")
    } onCancel: {
        gate.signal("cancelled")
    }
    throw CancellationError()
}

final class Counter: Sendable {
    private let value = Atomic<Int>(0)

    var count: Int { value.load(ordering: .sequentiallyConsistent) }

    @discardableResult
    func add(_ number: Int = 1) -> Int { value.add(number, ordering: .sequentiallyConsistent).newValue }
}

/// Waits between two reads of metrics whose change no event reports.
func shortDelay() async throws { try await Task.sleep(for: .milliseconds(2)) }
