import Basics
import Hosting
import JSONValue

/// The editor's metrics.
final class EditorMetrics: Sendable {
    let all = Metrics()
    let applied: Metrics.Counter
    let reverted: Metrics.Counter
    let previews: Metrics.Counter
    let recalled: Metrics.Counter
    let conflicts: Metrics.Counter
    let renderFailures: Metrics.Counter
    let published = PublishMetrics()
    private let renderMicroseconds: Histogram
    private let clock: MonotonicClock

    init(clock: MonotonicClock = .system) {
        self.clock = clock
        applied = all.counter("applied")
        reverted = all.counter("reverted")
        previews = all.counter("previews")
        recalled = all.counter("recalled")
        conflicts = all.counter("conflicts")
        renderFailures = all.counter("renderFailures")
        renderMicroseconds = all.histogram("renderMicroseconds")
    }

    /// Counts and times one render.
    func timing<Value>(_ body: () async throws(RPCError) -> Value) async throws(RPCError) -> Value {
        let start = clock.nowMicroseconds()
        do throws(RPCError) {
            let value = try await body()
            renderMicroseconds.record(clock.nowMicroseconds() - start)
            return value
        } catch {
            renderFailures.add()
            throw error
        }
    }
}
