import Contracts
import Basics
import JSONValue
import PhotoModel

/// What a publisher knows of the edits it has handed over: values only, no sockets, no clock.
///
/// The push gives no receipt, and the feed tells that something happened; what happened is what the catalog answers to
/// `edits.status`. An edit that the catalog does not know is sent again.
struct EditLedger: Sendable {
    private struct Entry: Sendable {
        let edit: PublishEdit
        let digest: String
        var told: PublishedEditState?
        /// When to ask for it, if nothing is heard before.
        var due: Int64
        var pause: Int64
    }

    /// Microseconds before the first question, and between later ones at most.
    static let firstPause: Int64 = 500_000
    static let longestPause: Int64 = 8_000_000

    private var entries: [String: Entry] = [:]
    let goal: PublishGoal

    init(goal: PublishGoal) {
        self.goal = goal
    }

    /// Edits that have not come as far as is waited for.
    var count: Int { entries.count }

    /// Their names.
    var ids: [String] { entries.keys.sorted() }

    /// When the next question is due; nil where nothing is open.
    var nextDue: Int64? { entries.values.map(\.due).min() }

    /// - Returns: whether the id is new here
    mutating func add(_ edit: PublishEdit, now: Int64) -> Bool {
        guard entries[edit.id] == nil else { return false }
        entries[edit.id] = Entry(
            edit: edit,
            digest: Self.digest(of: edit),
            due: now + Self.firstPause,
            pause: Self.firstPause
        )
        return true
    }

    /// The feed tells something about an edit of this name, perhaps another publisher's.
    mutating func heard(of id: String, now: Int64) { entries[id]?.due = now }

    /// Everything is due: the feed may have missed something.
    mutating func heardOfAll(now: Int64) { for id in entries.keys { entries[id]?.due = now } }

    /// Edits to be asked for now; they are due again after a pause that grows.
    mutating func takeDue(now: Int64, limit: Int) -> [String] {
        let due = entries.filter { $0.value.due <= now }.keys.sorted().prefix(limit)
        for id in due {
            guard let entry = entries[id] else { continue }
            entries[id]?.due = now + entry.pause
            entries[id]?.pause = min(entry.pause * 2, Self.longestPause)
        }
        return Array(due)
    }

    /// The catalog does not know an edit: it is to be sent again, where it is not accepted.
    func unknown(_ id: String) -> PublishEdit? { entries[id].flatMap { $0.told == nil ? $0.edit : nil } }

    /// What the catalog says of an edit; nil where that is known.
    mutating func take(_ status: EditStatus) -> EditStatus? {
        guard let entry = entries[status.edit.id] else { return nil }
        var status = status
        if !status.digest.isEmpty, status.digest != entry.digest {
            status.edit.state = .failed
            status.edit.asset = entry.edit.asset
            status.edit.errorName = Refusal.idReused.rawValue
            status.edit.errorMessage =
                "an edit with other content was published under this id before; take a new id for each edit"
        }
        guard status.edit.state != entry.told else { return nil }
        entries[status.edit.id]?.told = status.edit.state
        entries[status.edit.id]?.pause = Self.firstPause
        if goal.isReached(by: status.edit.state) { entries[status.edit.id] = nil }
        return status
    }

    /// SHA-256 of the parameters in canonical form, as the editor makes it.
    static func digest(of edit: PublishEdit) -> String { SHA256.hash(data: edit.json.canonical.bytes).hexadecimal }
}

/// How far a published edit is followed.
public enum PublishGoal: String, Sendable, CaseIterable {
    /// Until it is certain that it will be carried out.
    case accepted
    /// Until it was carried out.
    case applied

    func isReached(by state: PublishedEditState) -> Bool { self == .accepted || state != .accepted }
}
