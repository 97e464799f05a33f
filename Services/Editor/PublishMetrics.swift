import Hosting
import JSONValue

/// Metrics of published edits since the start.
final class PublishMetrics: Sendable {
    /// Messages read.
    let received = Metrics.Counter()
    /// Messages that do not identify an edit, so that no failure can be recorded.
    let unreadable = Metrics.Counter()
    /// Messages of identities that may not change the library.
    let denied = Metrics.Counter()
    /// Edits accepted, resumed at the start, and received again.
    let accepted = Metrics.Counter()
    let resumed = Metrics.Counter()
    let repeated = Metrics.Counter()
    /// Ids received again with other content.
    let reused = Metrics.Counter()
    let applied = Metrics.Counter()
    let failed = Metrics.Counter()
    /// Edits that were neither accepted nor ended, because the catalog recorded neither. Their publishers send them
    /// again.
    let setAside = Metrics.Counter()

    var json: JSONObject {
        [
            "received": .int(received.total), "unreadable": .int(unreadable.total), "denied": .int(denied.total),
            "accepted": .int(accepted.total),
            "takenUp": .int(resumed.total), "repeated": .int(repeated.total), "reused": .int(reused.total),
            "applied": .int(applied.total), "failed": .int(failed.total), "setAside": .int(setAside.total),
        ]
    }
}
