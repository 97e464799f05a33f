public import JSONValue
import Synchronization

/// The metrics of a service, for its `figures` method: counters, gauges, histograms, and sections of its components.
public final class Metrics: Sendable {
    /// A metric that only increases.
    public final class Counter: Sendable {
        private let value = Atomic<Int64>(0)

        /// Adds an amount; wraps around after 2^63.
        public func add(_ amount: Int = 1) { value.wrappingAdd(Int64(amount), ordering: .relaxed) }

        /// The total so far.
        public var total: Int64 { value.load(ordering: .relaxed) }
    }

    /// A metric that can increase and decrease.
    public final class Gauge: Sendable {
        private let value = Atomic<Int64>(0)

        /// Sets the value.
        public func set(_ amount: Int) { value.store(Int64(amount), ordering: .relaxed) }

        /// The present value.
        public var current: Int64 { value.load(ordering: .relaxed) }
    }

    private struct State {
        var counters: [String: Counter] = [:]
        var gauges: [String: Gauge] = [:]
        var histograms: [String: Histogram] = [:]
        var sections: [String: @Sendable () async -> JSONObject] = [:]
    }

    private let state = Mutex(State())
    private let started = MonotonicTime.now()

    /// Creates an instance with only the metrics of the process.
    public init() {}

    /// Returns the counter with a name; it is created on first use.
    public func counter(_ name: String) -> Counter {
        state.withLock { $0.counters.value(for: name) { Counter() } }
    }

    /// Returns the gauge with a name; it is created on first use.
    public func gauge(_ name: String) -> Gauge {
        state.withLock { $0.gauges.value(for: name) { Gauge() } }
    }

    /// Returns the histogram with a name; it is created on first use.
    public func histogram(_ name: String) -> Histogram {
        state.withLock { $0.histograms.value(for: name) { Histogram() } }
    }

    /// Adds an object that a component provides, for example `workers`.
    public func section(_ name: String, _ read: @escaping @Sendable () async -> JSONObject) {
        state.withLock { $0.sections[name] = read }
    }

    /// Returns all metrics, sorted by name.
    public func json() async -> JSONObject {
        let (counters, gauges, histograms, sections) = state.withLock { state in
            (state.counters, state.gauges, state.histograms, state.sections)
        }
        var object = JSONObject()
        for (name, counter) in counters { object[name] = .int(counter.total) }
        for (name, gauge) in gauges { object[name] = .int(gauge.current) }
        for (name, histogram) in histograms { object[name] = .object(histogram.json) }
        for (name, read) in sections { object[name] = .object(await read()) }
        object["process"] = .object(ProcessMetrics.read(since: started))
        if let connections = TrafficLimits.figures() { object["connections"] = .object(connections) }
        var sorted = JSONObject()
        for (name, value) in object.members.sorted(by: { $0.name < $1.name }) { sorted[name] = value }
        return sorted
    }
}

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
    /// - Parameter share: 0...1, for example 0.99
    public func quantile(_ share: Double) -> Int64 {
        state.withLock { Self.quantile(share, $0) }
    }

    var json: JSONObject {
        state.withLock { state in
            [
                "count": .int(state.count), "sum": .int(state.sum), "p50": .int(Self.quantile(0.5, state)),
                "p99": .int(Self.quantile(0.99, state)), "max": .int(state.largest),
            ]
        }
    }

    private static func quantile(_ share: Double, _ state: State) -> Int64 {
        guard state.count > 0 else { return 0 }
        let rank = Int64((Double(state.count) * min(1, max(0, share))).rounded(.up))
        var seen: Int64 = 0
        for (bucket, count) in state.buckets.enumerated() {
            seen += count
            if seen >= max(1, rank) { return min(largest(in: bucket), state.largest) }
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

extension Dictionary {
    fileprivate mutating func value(for key: Key, _ make: () -> Value) -> Value {
        if let value = self[key] { return value }
        let value = make()
        self[key] = value
        return value
    }
}
