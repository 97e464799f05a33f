import Basics
import Hosting
import JSONValue
import Synchronization

/// The thumbnailer's metrics.
final class ThumbnailerMetrics: Sendable {
    let all = Metrics()
    let memoryHits: Metrics.Counter
    let diskHits: Metrics.Counter
    let misses: Metrics.Counter
    let renders: Metrics.Counter
    let renderFailures: Metrics.Counter
    /// The number of decodes, each for one or several renditions.
    let decodes: Metrics.Counter
    let previews: Metrics.Counter
    let degraded: Metrics.Counter
    private let renderMicroseconds: Histogram
    private let rate = Mutex(RenderRate())
    private let clock: MonotonicClock

    init(clock: MonotonicClock = .system) {
        self.clock = clock
        memoryHits = all.counter("memoryHits")
        diskHits = all.counter("diskHits")
        misses = all.counter("misses")
        renders = all.counter("renders")
        renderFailures = all.counter("renderFailures")
        decodes = all.counter("decodes")
        previews = all.counter("previews")
        degraded = all.counter("degraded")
        renderMicroseconds = all.histogram("renderMicroseconds")
        all.section("rate") { [self] in ["rendersPerSecond": .double(rendersPerSecond)] }
    }

    private var rendersPerSecond: Double {
        rate.withLock { $0.perSecond(at: clock.nowMicroseconds()) }
    }

    /// Counts one decode and its renditions, and measures its time. Outcomes that are left to another decode are nil.
    func timing<Value>(_ body: () async -> [Result<Value, RPCError>?]) async -> [Result<Value, RPCError>?] {
        let start = clock.nowMicroseconds()
        let outcomes = await body()
        let end = clock.nowMicroseconds()
        renderMicroseconds.record(end - start)
        decodes.add()
        for outcome in outcomes.compactMap({ $0 }) {
            if case .success = outcome {
                renders.add()
                rate.withLock { $0.record(at: end) }
            } else {
                renderFailures.add()
            }
        }
        return outcomes
    }
}

/// The number of renders in each of the last ten seconds.
struct RenderRate: Sendable {
    static let seconds = 10

    private var counts = [Int](repeating: 0, count: seconds)
    /// The second to which each count belongs.
    private var times = [Int64](repeating: -1, count: seconds)

    /// Counts one render.
    ///
    /// - Parameter microseconds: the current time of a monotonic clock
    mutating func record(at microseconds: Int64) {
        let second = microseconds / 1_000_000
        let slot = Int(second % Int64(Self.seconds))
        if times[slot] != second {
            times[slot] = second
            counts[slot] = 0
        }
        counts[slot] += 1
    }

    /// Returns the renders per second, averaged over the last ten seconds.
    func perSecond(at microseconds: Int64) -> Double {
        let second = microseconds / 1_000_000
        let total = zip(times, counts).reduce(0) { sum, entry in
            entry.0 >= 0 && second - entry.0 < Int64(Self.seconds) ? sum + entry.1 : sum
        }
        return Double(total) / Double(Self.seconds)
    }
}
