import JSONValue
import Synchronization

/// A histogram with fixed buckets, each at most an eighth of its lower bound wide.
public final class Histogram: Sendable {
    private struct State {
        var buckets = [Int64](repeating: 0, count: Histogram.bucketCount)
        var count: Int64 = 0
        var sum: Int64 = 0
        var largest: Int64 = 0
    }

    // Values below 16 have a bucket each; above, eight buckets per power of two up to 2^43 (100 days in microseconds).
    private static let exact = 16
    private static let bucketCount = 16 + 39 * 8

    private let state = Mutex(State())

    /// Creates an empty histogram.
    public init() {}

    /// Records a value, usually in microseconds or bytes; negative values count as 0.
    public func record(_ value: Int64) {
        let value = max(0, value)
        state.withLock { state in
            state.buckets[Self.bucket(of: value)] += 1
            state.count += 1
            state.sum = state.sum.addingReportingOverflow(value).overflow ? .max : state.sum + value
            state.largest = max(state.largest, value)
        }
    }

    /// Returns a quantile with a relative error of at most an eighth; 0 if there are no values.
    ///
    /// - Parameter fraction: 0...1, for example 0.99
    public func quantile(_ fraction: Double) -> Int64 {
        state.withLock { Self.quantile(fraction, $0) }
    }

    var json: JSONObject {
        state.withLock { state in
            [
                "count": .int(state.count), "sum": .int(state.sum), "p50": .int(Self.quantile(0.5, state)),
                "p99": .int(Self.quantile(0.99, state)), "max": .int(state.largest),
            ]
        }
    }

    private static func quantile(_ fraction: Double, _ state: State) -> Int64 {
        guard state.count > 0 else { return 0 }
        let rank = Int64((Double(state.count) * min(1, max(0, fraction))).rounded(.up))
        var counted: Int64 = 0
        for (bucket, count) in state.buckets.enumerated() {
            counted += count
            if counted >= max(1, rank) { return min(largest(in: bucket), state.largest) }
        }
        return state.largest
    }

    static func bucket(of value: Int64) -> Int {
        guard value >= exact else { return Int(value) }
        let power = 63 - value.leadingZeroBitCount
        let eighth = Int(value >> Int64(power - 3)) & 7
        return min(exact + (power - 4) * 8 + eighth, bucketCount - 1)
    }

    static func largest(in bucket: Int) -> Int64 {
        guard bucket >= exact else { return Int64(bucket) }
        guard bucket < bucketCount - 1 else { return .max }
        let power = (bucket - exact) / 8 + 4
        let eighth = Int64((bucket - exact) % 8)
        return ((8 + eighth + 1) << Int64(power - 3)) - 1
    }
}
