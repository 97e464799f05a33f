import Contracts
import DequeModule
import PhotoModel

/// An observed result that is kept current, with a log of its latest changes. All observers of the same fetch share it.
///
/// Offset and limit are applied to the whole result at the very end, so that details are exact under them (P-04).
final class LiveFetch {
    let observation: String
    let fetch: Fetch
    /// The number of the fetch in the index.
    let number: Int
    /// The sequence of the result.
    private(set) var sequence: Int64
    /// The sequence after which the log is complete.
    private(set) var oldestComplete: Int64
    /// The last sequence at which the topic carried a message; initially the sequence of the keys.
    private(set) var previous: Int64
    /// The identities that observe the fetch, with the time of their last request in microseconds.
    var holders: [String: Int64] = [:]
    private let tree: KeyTree
    private var log: Deque<(sequence: Int64, changes: [NetChange], bytes: Int)> = []
    private var logged = 0
    /// Memory for the log, about.
    private(set) var logBytes = 0

    /// The maximum number of entity changes in the log.
    static let maxLogged = 1000

    init(_ observation: String, _ fetch: Fetch, number: Int, tree: KeyTree, at sequence: Int64) {
        self.observation = observation
        self.fetch = fetch
        self.number = number
        self.tree = tree
        self.sequence = sequence
        self.oldestComplete = sequence
        self.previous = sequence
    }

    /// The number of objects after offset and limit.
    var count: Int { fetch.shown(of: tree.count).count }
    /// The number of objects before offset and limit.
    var rows: Int { tree.count }
    /// Memory for them, about.
    var resultBytes: Int { tree.bytes + tree.count * 6 }
    /// Memory for them and for the log, about.
    var bytes: Int { resultBytes + logBytes }

    /// The identifiers of the result after offset and limit.
    var ids: [ObjectID] { tree.ids(at: fetch.shown(of: tree.count)) }

    /// Applies a transaction to the result.
    ///
    /// - Parameter changes: empty if the transaction touches no entity of the result
    /// - Returns: the details; nil if the visible part stays the same
    /// - Throws: an error if the changes do not fit this result
    func advance(to sequence: Int64, _ changes: [NetChange]) throws(ChangeDetailsError) -> ChangeDetails? {
        guard sequence > self.sequence else { return nil }
        self.sequence = sequence
        guard !changes.isEmpty else { return nil }
        for change in changes where change.before != change.after {
            if let key = change.before, !tree.remove(key.bytes) { throw ChangeDetailsError(entity: change.id) }
        }
        for change in changes where change.before != change.after {
            if let key = change.after, !tree.insert(key.bytes) { throw ChangeDetailsError(entity: change.id) }
        }
        let weight = changes.reduce(64) { $0 + $1.bytes }
        log.append((sequence, changes, weight))
        logged += changes.count
        logBytes += weight
        while logged > Self.maxLogged { forgetOldest() }
        guard let details = ChangeDetailsBuilder(changes, tree, of: fetch).details() else { return nil }
        previous = sequence
        return details
    }

    /// Forgets the oldest changes until the log takes no more than so many bytes: what came before is asked of history.
    func shortenLog(to bytes: Int) { while logBytes > bytes, !log.isEmpty { forgetOldest() } }

    private func forgetOldest() {
        guard let oldest = log.popFirst() else { return }
        oldestComplete = oldest.sequence
        logged -= oldest.changes.count
        logBytes -= oldest.bytes
    }

    /// What became of entities after a moment that the log reaches.
    func changes(after sequence: Int64) -> NetChanges {
        var net = NetChanges()
        for entry in log where entry.sequence > sequence { net.add(entry.changes) }
        return net
    }

    /// Returns the details between a sequence and now, from all net changes in between.
    func details(_ changes: NetChanges) -> ChangeDetails? {
        ChangeDetailsBuilder(changes.all, tree, of: fetch).details()
    }
}

/// An error: a transaction does not fit the result it is applied to, so the result has to be loaded again.
struct ChangeDetailsError: Error {
    let entity: ObjectID
}
