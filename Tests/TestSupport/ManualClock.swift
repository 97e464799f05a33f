public import Basics
import Synchronization

/// A clock that advances only when the test advances it.
public final class ManualClock: Sendable {
    private let time: Atomic<Int64>

    /// - Parameter microseconds: the initial time
    public init(_ microseconds: Int64 = 1_000_000) { time = Atomic(microseconds) }

    /// The time in microseconds.
    public var now: Int64 { time.load(ordering: .sequentiallyConsistent) }

    public var clock: MonotonicClock { MonotonicClock { [self] in now } }

    /// Advances the clock by some microseconds, and returns the new time.
    @discardableResult
    public func advance(by microseconds: Int64) -> Int64 {
        time.add(microseconds, ordering: .sequentiallyConsistent).newValue
    }

    public func advance(milliseconds: Int64) { advance(by: milliseconds * 1000) }
}
