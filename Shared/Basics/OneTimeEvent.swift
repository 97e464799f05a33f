import Synchronization

/// An event that happens once and that any number of tasks can wait for.
public final class OneTimeEvent: Sendable {
    private struct State {
        var hasHappened = false
        var waiters: [UInt64: Promise<Void>] = [:]
        var nextNumber: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Creates an event that has not happened.
    public init() {}

    /// True if ``signal()`` was called.
    public var hasHappened: Bool { state.withLock { $0.hasHappened } }

    /// Makes the event happen and resumes all waiting tasks; has no effect after the first call.
    public func signal() {
        let waiters = state.withLock { state in
            state.hasHappened = true
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.fulfill(()) }
    }

    /// Suspends until the event happens, whether or not the task is cancelled.
    public func wait() async { await addWaiter()?.promise.value() }

    /// Suspends until the event happens or the task is cancelled.
    public func waitUnlessCancelled() async {
        guard let (number, promise) = addWaiter() else { return }
        await promise.value(ifCancelled: ())
        state.withLock { _ = $0.waiters.removeValue(forKey: number) }
    }

    private func addWaiter() -> (number: UInt64, promise: Promise<Void>)? {
        state.withLock { state in
            guard !state.hasHappened else { return nil }
            let promise = Promise<Void>()
            state.nextNumber += 1
            state.waiters[state.nextNumber] = promise
            return (state.nextNumber, promise)
        }
    }
}
