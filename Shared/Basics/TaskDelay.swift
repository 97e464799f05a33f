public import Dispatch

/// All delays of the project, named after their reason. Code that can wait for an event must not use them.
///
/// Each ends early if the task is cancelled, except ``retryDelay(_:on:)``.
public enum TaskDelay {
    /// Waits before a failed operation is retried.
    public static func retryDelay(_ pause: Duration) async { try? await Task.sleep(for: pause) }

    /// Waits before a failed operation is retried, on a dispatch queue. It is for callers that may block all threads of
    /// Swift's pool, because a sleep of a task ends on one of these.
    ///
    /// The cancellation of the task does not end it.
    public static func retryDelay(_ pause: Duration, on queue: DispatchQueue) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            queue.asyncAfter(deadline: .now() + .microseconds(Int(pause.microseconds))) { continuation.resume() }
        }
    }

    /// Waits before the next poll of a state that no event reports.
    public static func pollInterval(_ pause: Duration) async { try? await Task.sleep(for: pause) }

    /// Waits before events are handled, so that a burst is handled once.
    public static func debounce(_ pause: Duration) async { try? await Task.sleep(for: pause) }

    /// Waits so that background work does not exceed its rate; returns at once for a pause that is not positive.
    public static func rateLimit(_ pause: Duration) async { try? await Task.sleep(for: pause) }

    /// Waits for the time that another party is given to react.
    ///
    /// - Returns: true if the time has passed; false if the task was cancelled before
    public static func timeout(_ time: Duration) async -> Bool { (try? await Task.sleep(for: time)) != nil }

    /// Waits until a time of a clock, in microseconds.
    ///
    /// A sleep may end earlier: while the machine is suspended, the clock of the sleep advances and `CLOCK_MONOTONIC`
    /// does not.
    public static func until(_ time: Int64, of clock: MonotonicClock) async {
        while !Task.isCancelled {
            let remaining = time.addingClamped(-clock.nowMicroseconds())
            guard remaining > 0 else { return }
            try? await Task.sleep(for: .microseconds(remaining))
        }
    }

    /// Runs work with a timeout, and cancels it when the time is over.
    ///
    /// - Returns: the result; nil if the work did not finish in time or the task was cancelled
    /// - Throws: the work's error
    @discardableResult
    public static func withTimeout<Value: Sendable, Failure: Error>(
        _ limit: Duration,
        for work: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value? {
        let outcome = await withTaskGroup(of: Result<Value, Failure>?.self) { group in
            group.addTask {
                do throws(Failure) { return .success(try await work()) } catch { return .failure(error) }
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
        return try outcome?.get()
    }

    /// Returns a sequence with an element after each interval, until the task is cancelled.
    public static func ticks(every interval: Duration) -> Ticks { Ticks(interval: interval) }

    /// The sequence returned by ``TaskDelay/ticks(every:)``.
    public struct Ticks: AsyncSequence, AsyncIteratorProtocol, Sendable {
        public typealias Element = Void
        public typealias Failure = Never

        let interval: Duration

        public func makeAsyncIterator() -> Ticks { self }

        /// Waits for the interval; `nil` if the task was cancelled.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Void? {
            try? await Task.sleep(for: interval)
        }
    }
}
