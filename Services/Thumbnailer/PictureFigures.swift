import Hosting
import JSONValue
import Messaging
import Synchronization

/// What the thumbnailer counts.
final class PictureFigures: Sendable {
    let all = Figures()
    let memoryHits: Figures.Counter
    let diskHits: Figures.Counter
    let misses: Figures.Counter
    let renders: Figures.Counter
    let renderFailures: Figures.Counter
    private let renderMicroseconds: Spread
    private let rate = Mutex(RenderRate())
    private let clock: MonotonicClock

    init(clock: MonotonicClock = .system) {
        self.clock = clock
        memoryHits = all.counter("memoryHits")
        diskHits = all.counter("diskHits")
        misses = all.counter("misses")
        renders = all.counter("renders")
        renderFailures = all.counter("renderFailures")
        renderMicroseconds = all.spread("renderMicroseconds")
        all.section("rate") { [self] in ["rendersPerSecond": .double(rendersPerSecond)] }
    }

    private var rendersPerSecond: Double {
        rate.withLock { $0.perSecond(at: clock.nowMicroseconds()) }
    }

    /// Counts and times one render.
    func timing<Value>(_ body: () async throws(RPCError) -> Value) async throws(RPCError) -> Value {
        let start = clock.nowMicroseconds()
        do throws(RPCError) {
            let value = try await body()
            let end = clock.nowMicroseconds()
            renderMicroseconds.record(end - start)
            renders.add()
            rate.withLock { $0.note(at: end) }
            return value
        } catch {
            renderFailures.add()
            throw error
        }
    }
}
