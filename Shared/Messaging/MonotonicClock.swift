import Glibc

/// The time that deadlines are measured with: never set back, unrelated to the date.
public struct MonotonicClock: Sendable {
    /// Microseconds since some fixed moment.
    public var nowMicroseconds: @Sendable () -> Int64

    public init(nowMicroseconds: @escaping @Sendable () -> Int64) {
        self.nowMicroseconds = nowMicroseconds
    }

    /// The machine's own `CLOCK_MONOTONIC`.
    public static let system = MonotonicClock {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}

extension Duration {
    /// Whole microseconds, at least zero, saturating.
    var microseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        guard !overflow else { return .max }
        return product.addingClamped(attoseconds / 1_000_000_000_000)
    }

    /// Whole milliseconds as the 32-bit number that libzmq's options take.
    var optionMilliseconds: Int32 { Int32(clamping: microseconds / 1000) }
}

extension FixedWidthInteger {
    /// The sum, or the nearest number that fits: numbers from the wire must not trap.
    func addingClamped(_ other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        guard overflow else { return sum }
        return other > 0 ? .max : .min
    }
}
