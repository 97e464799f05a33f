import Hosting
import Messaging

/// What the editor counts.
final class EditFigures: Sendable {
    let all = Figures()
    let applied: Figures.Counter
    let reverted: Figures.Counter
    let previews: Figures.Counter
    let recalled: Figures.Counter
    let conflicts: Figures.Counter
    let renderFailures: Figures.Counter
    private let renderMicroseconds: Spread
    private let clock: MonotonicClock

    init(clock: MonotonicClock = .system) {
        self.clock = clock
        applied = all.counter("applied")
        reverted = all.counter("reverted")
        previews = all.counter("previews")
        recalled = all.counter("recalled")
        conflicts = all.counter("conflicts")
        renderFailures = all.counter("renderFailures")
        renderMicroseconds = all.spread("renderMicroseconds")
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
