/// Every sleep of the house, by its reason: what an event can tell is waited for, not slept through.
///
/// Each ends early when the task is cancelled.
public enum Waiting {
    /// Before something that failed is tried again.
    public static func beforeRetry(_ pause: Duration) async { try? await Task.sleep(for: pause) }

    /// Before something is looked at again whose state no event tells.
    public static func beforeNextLook(_ pause: Duration) async { try? await Task.sleep(for: pause) }

    /// Before the next of several events is told, so that a burst of them is told as one.
    public static func forCalm(_ pause: Duration) async { try? await Task.sleep(for: pause) }

    /// How long somebody is given to do what was asked for.
    ///
    /// - Returns: whether the time has passed: false where the task was cancelled before
    public static func patiently(_ time: Duration) async -> Bool { (try? await Task.sleep(for: time)) != nil }

    /// Until a moment of a clock, in microseconds.
    public static func until(_ moment: Int64, of clock: MonotonicClock) async {
        let left = moment.addingClamped(-clock.nowMicroseconds())
        if left > 0 { try? await Task.sleep(for: .microseconds(left)) }
    }

    /// At most this long for the end of some work, which is cancelled then.
    ///
    /// - Returns: what came of it; nil where it did not end in time, or the task was cancelled
    /// - Throws: what the work throws
    @discardableResult
    public static func atMost<Value: Sendable, Failure: Error>(
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

    /// A tick after each interval, until the task is cancelled.
    public static func ticks(every interval: Duration) -> Ticks { Ticks(interval: interval) }

    /// What ``Waiting/ticks(every:)`` gives.
    public struct Ticks: AsyncSequence, AsyncIteratorProtocol, Sendable {
        public typealias Element = Void
        public typealias Failure = Never

        let interval: Duration

        public func makeAsyncIterator() -> Ticks { self }

        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Void? {
            try? await Task.sleep(for: interval)
        }
    }
}
