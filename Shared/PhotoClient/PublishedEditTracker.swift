import Contracts
import Basics
import JSONValue
import PhotoModel

/// The states of a publisher's open edits, without sockets or a clock.
///
/// A push is not acknowledged, and the feed only signals that an edit changed; the state comes from `edits.status` of
/// the catalog. An edit that the catalog does not know is sent again.
struct PublishedEditTracker: Sendable {
    private struct Entry: Sendable {
        let edit: PublishEdit
        let digest: String
        var reported: PublishedEditState?
        /// Time of the next poll if the feed signals nothing before, in monotonic microseconds.
        var due: Int64
        /// Microseconds between the next poll and the one after it.
        var interval: Int64
    }

    /// Microseconds before the first poll, and the maximum between later ones.
    static let firstInterval: Int64 = 500_000
    static let maxInterval: Int64 = 8_000_000

    private var entries: [String: Entry] = [:]
    let goal: PublishGoal

    init(goal: PublishGoal) {
        self.goal = goal
    }

    /// Number of edits that have not reached the goal.
    var count: Int { entries.count }

    /// Ids of the open edits, sorted.
    var ids: [String] { entries.keys.sorted() }

    /// Time of the next poll; nil if no edit is open.
    var nextDue: Int64? { entries.values.map(\.due).min() }

    /// Adds an edit.
    ///
    /// - Returns: false if an edit with this id is open
    mutating func add(_ edit: PublishEdit, now: Int64) -> Bool {
        guard entries[edit.id] == nil else { return false }
        entries[edit.id] = Entry(
            edit: edit,
            digest: Self.digest(of: edit),
            due: now + Self.firstInterval,
            interval: Self.firstInterval
        )
        return true
    }

    /// Makes an edit due because the feed has a change for its id, possibly of another publisher's edit.
    mutating func makeDue(_ id: String, now: Int64) { entries[id]?.due = now }

    /// Makes all edits due because the feed may have missed changes.
    mutating func makeAllDue(now: Int64) { for id in entries.keys { entries[id]?.due = now } }

    /// Returns the edits to poll now; each is due again after an increasing delay.
    mutating func dequeueDue(now: Int64, limit: Int) -> [String] {
        let due = entries.filter { $0.value.due <= now }.keys.sorted().prefix(limit)
        for id in due {
            guard let entry = entries[id] else { continue }
            entries[id]?.due = now + entry.interval
            entries[id]?.interval = min(entry.interval * 2, Self.maxInterval)
        }
        return Array(due)
    }

    /// Returns the edit to send again if the catalog does not know it; nil if it was accepted or is not open.
    func editToResend(_ id: String) -> PublishEdit? {
        entries[id].flatMap { $0.reported == nil ? $0.edit : nil }
    }

    /// Handles the state of an edit; returns the status update to deliver, nil if the state is not new.
    mutating func update(_ status: EditStatus) -> EditStatus? {
        guard let entry = entries[status.edit.id] else { return nil }
        var status = status
        if !status.digest.isEmpty, status.digest != entry.digest {
            status.edit.state = .failed
            status.edit.asset = entry.edit.asset
            status.edit.errorName = ErrorCode.idReused.rawValue
            status.edit.errorMessage =
                "an edit with other content was published with this id before; use a new id for each edit"
        }
        guard status.edit.state != entry.reported else { return nil }
        entries[status.edit.id]?.reported = status.edit.state
        entries[status.edit.id]?.interval = Self.firstInterval
        if goal.isReached(by: status.edit.state) { entries[status.edit.id] = nil }
        return status
    }

    /// Returns the SHA-256 of the parameters in canonical form, as computed by the editor.
    static func digest(of edit: PublishEdit) -> String { SHA256.hash(data: edit.json.canonical.bytes).hexadecimal }
}

/// The state up to which a published edit is followed.
public enum PublishGoal: String, Sendable, CaseIterable {
    /// Until it is durably accepted.
    case accepted
    /// Until it was applied or failed.
    case applied

    func isReached(by state: PublishedEditState) -> Bool { self == .accepted || state != .accepted }
}
