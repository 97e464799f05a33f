import Glibc

/// The clock for deadlines: monotonic, unrelated to the date.
public struct MonotonicClock: Sendable {
    /// Microseconds since an arbitrary fixed point in time.
    public var nowMicroseconds: @Sendable () -> Int64

    /// Makes a clock from a function, for example one that a test controls.
    public init(nowMicroseconds: @escaping @Sendable () -> Int64) {
        self.nowMicroseconds = nowMicroseconds
    }

    /// The system's `CLOCK_MONOTONIC`.
    public static let system = MonotonicClock { now(CLOCK_MONOTONIC) }

    /// The system's `CLOCK_BOOTTIME`, which unlike ``system`` proceeds while the machine is suspended.
    public static let elapsed = MonotonicClock { now(CLOCK_BOOTTIME) }

    fileprivate static func now(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}

/// The clock for dates, which may be set at any time.
public enum WallClock {
    /// Returns microseconds since 1970: the system's `CLOCK_REALTIME`.
    public static func nowMicroseconds() -> Int64 { MonotonicClock.now(CLOCK_REALTIME) }
}

extension Duration {
    /// Whole microseconds, at least zero, saturating.
    public var microseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        guard !overflow else { return .max }
        return product.addingClamped(attoseconds / 1_000_000_000_000)
    }
}

extension FixedWidthInteger {
    /// Returns the sum, clamped to the type's range: numbers from the wire must not trap.
    @inlinable
    public func addingClamped(_ other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        guard overflow else { return sum }
        return other > 0 ? .max : .min
    }
}
