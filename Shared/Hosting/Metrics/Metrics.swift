public import JSONValue
import Synchronization

/// The metrics of a service, for its `figures` method: counters, gauges, histograms, and sections of its components.
public final class Metrics: Sendable {
    /// A metric that only increases.
    public final class Counter: Sendable {
        private let value = Atomic<Int64>(0)

        /// Creates a counter at zero.
        public init() {}

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

        /// The current value.
        public var current: Int64 { value.load(ordering: .relaxed) }
    }

    private struct State {
        var counters: [String: Counter] = [:]
        var gauges: [String: Gauge] = [:]
        var histograms: [String: Histogram] = [:]
        var sections: [String: @Sendable () async -> JSONObject] = [:]
    }

    private let state = Mutex(State())
    private let started = MonotonicInstant.now()

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

extension Dictionary {
    fileprivate mutating func value(for key: Key, _ make: () -> Value) -> Value {
        if let value = self[key] { return value }
        let value = make()
        self[key] = value
        return value
    }
}
