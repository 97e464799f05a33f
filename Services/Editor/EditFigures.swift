import Hosting
import JSONValue
import Messaging

/// Metrics of published edits since the start.
struct PublishFigures: Sendable {
    private let all = Figures()
    /// Messages read.
    let received: Figures.Counter
    /// Messages that do not identify an edit, so that no failure can be recorded.
    let unreadable: Figures.Counter
    /// Edits accepted, resumed at the start, and received again.
    let accepted: Figures.Counter
    let takenUp: Figures.Counter
    let repeated: Figures.Counter
    /// Ids received again with other content.
    let reused: Figures.Counter
    let applied: Figures.Counter
    let failed: Figures.Counter
    /// Edits that the catalog neither accepted nor ended. If they were accepted, they are tried again at the next
    /// start.
    let setAside: Figures.Counter

    init() {
        received = all.counter("received")
        unreadable = all.counter("unreadable")
        accepted = all.counter("accepted")
        takenUp = all.counter("takenUp")
        repeated = all.counter("repeated")
        reused = all.counter("reused")
        applied = all.counter("applied")
        failed = all.counter("failed")
        setAside = all.counter("setAside")
    }

    var json: JSONObject {
        [
            "received": .int(received.total), "unreadable": .int(unreadable.total), "accepted": .int(accepted.total),
            "takenUp": .int(takenUp.total), "repeated": .int(repeated.total), "reused": .int(reused.total),
            "applied": .int(applied.total), "failed": .int(failed.total), "setAside": .int(setAside.total),
        ]
    }
}

/// The editor's metrics.
final class EditFigures: Sendable {
    let all = Figures()
    let applied: Figures.Counter
    let reverted: Figures.Counter
    let previews: Figures.Counter
    let recalled: Figures.Counter
    let conflicts: Figures.Counter
    let renderFailures: Figures.Counter
    let published = PublishFigures()
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
