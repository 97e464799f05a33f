import Contracts
import DequeModule
import PhotoModel

/// A result that is kept current, and what became of it lately. One for all who observe the same fetch.
///
/// Offset and limit are cut out of the whole result at the very end, so that details are exact under them (spec P-04).
final class LiveFetch {
    let observation: String
    let fetch: Fetch
    /// Tells it apart in the index.
    let number: Int
    /// The moment of the result.
    private(set) var sequence: Int64
    /// The log knows everything after this.
    private(set) var floor: Int64
    /// The last moment at which the topic carried something; to begin with that of the keys.
    private(set) var previous: Int64
    /// Who asked for it, and when they last did, in microseconds.
    var holders: [String: Int64] = [:]
    private let tree: KeyTree
    private var log: Deque<(sequence: Int64, changes: [NetChange], bytes: Int)> = []
    private var logged = 0
    /// Memory for the log, about.
    private(set) var logBytes = 0

    /// Changes of single entities that the log keeps.
    static let maxLogged = 1000

    init(_ observation: String, _ fetch: Fetch, number: Int, tree: KeyTree, at sequence: Int64) {
        self.observation = observation
        self.fetch = fetch
        self.number = number
        self.tree = tree
        self.sequence = sequence
        self.floor = sequence
        self.previous = sequence
    }

    /// Objects after offset and limit.
    var count: Int { fetch.shown(of: tree.count).count }
    /// Objects before offset and limit.
    var rows: Int { tree.count }
    /// Memory for them, about.
    var resultBytes: Int { tree.bytes + tree.count * 6 }
    /// Memory for them and for the log, about.
    var bytes: Int { resultBytes + logBytes }

    /// The result as it is shown.
    var ids: [ObjectID] { tree.ids(at: fetch.shown(of: tree.count)) }

    /// Takes in what a transaction does to it.
    ///
    /// - Parameter changes: none where it touches no entity of the result
    /// - Returns: the details; nil where what is shown stays the same
    /// - Throws: where the changes are about another result than this
    func advance(to sequence: Int64, _ changes: [NetChange]) throws(ChangeDetailsProblem) -> ChangeDetails? {
        guard sequence > self.sequence else { return nil }
        self.sequence = sequence
        guard !changes.isEmpty else { return nil }
        for change in changes where change.before != change.after {
            if let key = change.before, !tree.remove(key.bytes) { throw ChangeDetailsProblem(entity: change.id) }
        }
        for change in changes where change.before != change.after {
            if let key = change.after, !tree.insert(key.bytes) { throw ChangeDetailsProblem(entity: change.id) }
        }
        let weight = changes.reduce(64) { $0 + $1.bytes }
        log.append((sequence, changes, weight))
        logged += changes.count
        logBytes += weight
        while logged > Self.maxLogged { forgetOldest() }
        guard let details = DetailsMaker(changes, tree, of: fetch).details() else { return nil }
        previous = sequence
        return details
    }

    /// Forgets the oldest changes until the log takes no more than so many bytes: what came before is asked of history.
    func shortenLog(to bytes: Int) { while logBytes > bytes, !log.isEmpty { forgetOldest() } }

    private func forgetOldest() {
        guard let oldest = log.popFirst() else { return }
        floor = oldest.sequence
        logged -= oldest.changes.count
        logBytes -= oldest.bytes
    }

    /// What became of entities after a moment that the log reaches.
    func changes(after sequence: Int64) -> NetChanges {
        var net = NetChanges()
        for entry in log where entry.sequence > sequence { net.add(entry.changes) }
        return net
    }

    /// The details between a moment and now, from all that became of entities in between.
    func details(_ changes: NetChanges) -> ChangeDetails? { DetailsMaker(changes.all, tree, of: fetch).details() }
}

/// A transaction does not fit the result it is applied to: the result has to be loaded again.
struct ChangeDetailsProblem: Error {
    let entity: ObjectID
}
