public import Basics
import Synchronization

/// A clock that advances only when the test advances it.
public final class ManualClock: Sendable {
    private let now = Atomic<Int64>(1_000_000)

    public init() {}

    public var clock: MonotonicClock { MonotonicClock { [self] in now.load(ordering: .sequentiallyConsistent) } }

    public func advance(milliseconds: Int64) { now.add(milliseconds * 1000, ordering: .sequentiallyConsistent) }
}
