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

    /// Counts and times one decode with its renditions, which are nil where it made none.
    func timing<Value>(_ body: () async -> [Result<Value, RPCError>?]) async -> [Result<Value, RPCError>?] {
        let start = clock.nowMicroseconds()
        let outcomes = await body()
        let end = clock.nowMicroseconds()
        renderMicroseconds.record(end - start)
        decodes.add()
        for outcome in outcomes.compactMap({ $0 }) {
            if case .success = outcome {
                renders.add()
                rate.withLock { $0.note(at: end) }
            } else {
                renderFailures.add()
            }
        }
        return outcomes
    }
}
