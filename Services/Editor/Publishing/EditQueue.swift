import Contracts
import JSONValue
import PhotoModel

/// The name of a published edit: its publisher, and the id that the publisher gave it.
struct EditKey: Sendable, Hashable {
    var publisher: String
    var id: String
}

/// The groups of published edits. Each has its own limit of edits that run at the same time, so the edits of one lane
/// do not wait for those of another.
enum EditLane: Sendable, CaseIterable {
    /// Edits of photos whose originals are on this machine. Each edit begins here.
    case photo
    /// Edits that render a video: one worker renders all of them, each for up to an hour.
    case video
    /// Edits of originals that are in remote storage only, which may not be reachable.
    case download
}

/// A published edit that is accepted and not finished.
struct QueuedEdit: Sendable, Equatable {
    var key: EditKey
    var edit: PublishEdit
    var digest: String
    /// True if another editor may have begun it: it is looked up before it is rendered.
    var isShared = false
    var lane = EditLane.photo
    /// True once its original was found to be in remote storage only, and the edit allows the download.
    var mayDownload = false

    var predecessor: EditKey? { edit.predecessor.map { EditKey(publisher: key.publisher, id: $0) } }

    /// Returns the edit in the lane that it needs, by the error of an attempt; nil if the error is another one.
    func moved(after error: RPCError) -> QueuedEdit? {
        var moved = self
        if error == .videoInOtherLane, lane != .video {
            moved.lane = .video
            return moved
        }
        guard error.errorCode == .networkAccessRequired, edit.isNetworkAccessAllowed, !mayDownload else { return nil }
        moved.lane = .download
        moved.mayDownload = true
        return moved
    }
}

/// The queue of published edits; decides which edit runs next. It has no clock and no tasks.
///
/// An edit runs after its predecessor, in whatever order they arrive. Edits of one asset run one at a time, the older
/// one first; otherwise publishers take turns in each lane, and the older edit of each runs first. `after` promises
/// order, not success: if the predecessor failed, an edit that replaces all operations runs anyway, because its result
/// does not depend on it; one that appends fails, because it would be appended to something else.
struct EditQueue: Sendable {
    struct Limits: Sendable {
        /// The maximum number of edits waiting for a predecessor that has not been published; further ones fail at
        /// once.
        var unknownPredecessors = 1024
        /// The time that they wait, in microseconds.
        var predecessorTimeout: Int64 = 30_000_000
        /// The maximum number of edits of a publisher that does not see the whole library, while the queue is half
        /// full; further ones are dropped.
        var ofLimitedPublisher = 1024
    }

    /// The action to take after adding an edit.
    enum AddResult: Sendable, Equatable {
        case queued
        case known
        /// Look up this predecessor in the catalog, then call ``update(_:predecessor:now:)``.
        case lookUp(EditKey)
        /// End the edit with this error.
        case fails(Failure)
    }

    /// An edit that cannot be applied because of its predecessor.
    struct Failure: Sendable, Equatable {
        var edit: QueuedEdit
        var errorCode: ErrorCode
        var message: String
    }

    private enum Stage: Sendable, Equatable {
        /// The state of the predecessor is being looked up in the catalog.
        case lookingUp
        /// The predecessor is in the queue.
        case behind
        /// The predecessor has not been published yet.
        case unknownPredecessor(until: Int64)
        /// Another editor has the predecessor.
        case behindOther
        case ready
        case running
        /// Its failure is being recorded in the catalog.
        case ending
    }

    private struct Entry: Sendable {
        var edit: QueuedEdit
        var stage: Stage
        var order: UInt64
        var since: Int64
    }

    /// A publisher that has edits in the queue.
    private struct Publisher: Sendable {
        var count = 0
        /// The last turn when its first edit arrived.
        let firstTurn: UInt64
        var turns: [EditLane: UInt64] = [:]

        /// Returns its last turn in a lane.
        func turn(in lane: EditLane) -> UInt64 { turns[lane] ?? firstTurn }
    }

    let limits: Limits
    private var entries: [EditKey: Entry] = [:]
    private var publishers: [String: Publisher] = [:]
    private var lastTurn: UInt64 = 0
    private var successors: [EditKey: Set<EditKey>] = [:]
    private var ready: [(order: UInt64, key: EditKey)] = []
    private var busyAssets: Set<ObjectID> = []
    private var unknownPredecessors = 0
    /// The edits whose predecessors are not in this queue, so that only another editor can accept or finish them.
    private var waitingForOthers: Set<EditKey> = []
    private var nextOrder: UInt64 = 0

    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    // MARK: Adding

    /// Adds an accepted edit.
    ///
    /// - Parameter now: the time of a monotonic clock in microseconds
    mutating func add(_ edit: QueuedEdit, now: Int64) -> AddResult {
        guard entries[edit.key] == nil else { return .known }
        nextOrder += 1
        entries[edit.key] = Entry(edit: edit, stage: .lookingUp, order: nextOrder, since: now)
        let newPublisher = Publisher(firstTurn: lastTurn)
        publishers[edit.key.publisher, default: newPublisher].count += 1
        var result = AddResult.queued
        if let predecessor = edit.predecessor {
            successors[predecessor, default: []].insert(edit.key)
            if entries[predecessor] == nil {
                result = .lookUp(predecessor)
            } else if formsCycle(from: edit.key) {
                result = .fails(
                    end(edit.key, .missingPredecessor, "its predecessors form a cycle with it; omit after")
                )
            } else {
                set(edit.key, .behind)
            }
        } else {
            set(edit.key, .ready)
        }
        // Edits that arrived before this predecessor now wait for it.
        for successor in successors[edit.key] ?? [] where hasPredecessorElsewhere(successor) { set(successor, .behind) }
        return result
    }

    /// Updates an edit whose predecessor is not in the queue.
    ///
    /// - Parameter state: the state of the predecessor in the catalog; nil if the catalog does not know it
    /// - Returns: the failure of the edit, if the predecessor causes one
    mutating func update(_ key: EditKey, predecessor state: PublishedEditState?, now: Int64) -> Failure? {
        guard let stage = entries[key]?.stage, hasPredecessorElsewhere(key) else { return nil }
        switch state {
        case .applied:
            set(key, .ready)
            return nil
        case .failed: return afterFailure(key)
        case .accepted:
            set(key, .behindOther)
            return nil
        case nil:
            if case .unknownPredecessor = stage { return nil }
            guard unknownPredecessors < limits.unknownPredecessors else {
                return end(
                    key,
                    .missingPredecessor,
                    "\(limits.unknownPredecessors) edits wait for missing predecessors; publish an edit before those"
                        + " that come after it"
                )
            }
            set(key, .unknownPredecessor(until: now + limits.predecessorTimeout))
            return nil
        }
    }

    /// The publishers of edits here that wait for predecessors elsewhere.
    var publishersWaiting: Set<String> { Set(waitingForOthers.map(\.publisher)) }

    /// Returns the predecessors elsewhere that a publisher's edits wait for.
    func awaited(of publisher: String) -> [String] {
        let ids = waitingForOthers.filter { $0.publisher == publisher }.compactMap {
            entries[$0]?.edit.edit.predecessor
        }
        return Set(ids).sorted()
    }

    /// Continues the edits that wait for a predecessor elsewhere, with its state in the catalog.
    ///
    /// - Returns: the failures that the predecessor causes
    mutating func note(_ predecessor: EditKey, _ state: PublishedEditState, now: Int64) -> [Failure] {
        let waiting = (successors[predecessor] ?? []).intersection(waitingForOthers).sorted { $0.id < $1.id }
        return waiting.compactMap { update($0, predecessor: state, now: now) }
    }

    // MARK: Running

    /// Returns an edit of these lanes to run now; nil if there is none.
    mutating func next(in lanes: Set<EditLane> = Set(EditLane.allCases)) -> QueuedEdit? {
        guard !lanes.isEmpty else { return nil }
        var earliest: [EditLane: UInt64] = [:]
        for lane in lanes { earliest[lane] = publishers.values.map { $0.turn(in: lane) }.min() }
        // The assets with an older edit, which runs first.
        var waitingAssets: Set<ObjectID> = []
        var next: (index: Int, edit: QueuedEdit, turn: UInt64)?
        for (index, item) in ready.enumerated() {
            guard let edit = entries[item.key]?.edit, !busyAssets.contains(edit.edit.asset),
                waitingAssets.insert(edit.edit.asset).inserted, lanes.contains(edit.lane),
                let turn = publishers[item.key.publisher]?.turn(in: edit.lane)
            else { continue }
            let hasWaitedLongest = turn == earliest[edit.lane]
            if hasWaitedLongest || turn < next?.turn ?? .max { next = (index, edit, turn) }
            if hasWaitedLongest { break }
        }
        guard let next else { return nil }
        ready.remove(at: next.index)
        busyAssets.insert(next.edit.edit.asset)
        entries[next.edit.key]?.stage = .running
        lastTurn += 1
        publishers[next.edit.key.publisher]?.turns[next.edit.lane] = lastTurn
        return next.edit
    }

    /// Returns a running edit to the queue, to run in another lane. It is still before the newer edits of its asset.
    mutating func postpone(_ edit: QueuedEdit) {
        guard entries[edit.key]?.stage == .running else { return }
        busyAssets.remove(edit.edit.asset)
        entries[edit.key]?.edit = edit
        set(edit.key, .ready)
    }

    /// Removes an edit that is finished, here or by another process. Returns the edits that fail because of it.
    mutating func finish(_ key: EditKey, _ state: PublishedEditState) -> [Failure] {
        remove(key)
        var failures: [Failure] = []
        for successor in (successors.removeValue(forKey: key) ?? []).sorted(by: { $0.id < $1.id }) {
            guard let stage = entries[successor]?.stage, stage == .behind || hasPredecessorElsewhere(successor)
            else { continue }
            if state == .failed {
                if let failure = afterFailure(successor) { failures.append(failure) }
            } else {
                set(successor, .ready)
            }
        }
        return failures
    }

    /// Returns the failures of edits whose waiting time is over.
    mutating func expire(now: Int64) -> [Failure] {
        let late = entries.filter { entry in
            if case .unknownPredecessor(let until) = entry.value.stage { return until <= now }
            return false
        }
        return late.keys.sorted { $0.id < $1.id }.map { key in
            end(
                key,
                .missingPredecessor,
                "its predecessor \(entries[key]?.edit.edit.predecessor ?? "") was not published within"
                    + " \(limits.predecessorTimeout / 1_000_000) s; publish that first or omit after"
            )
        }
    }

    /// Returns the deadline of an edit that waits for a missing predecessor; nil for other edits.
    func deadline(of key: EditKey) -> Int64? {
        guard case .unknownPredecessor(let until) = entries[key]?.stage else { return nil }
        return until
    }

    // MARK: Figures

    var count: Int { entries.count }

    func contains(_ key: EditKey) -> Bool { entries[key] != nil }

    /// Returns true if a publisher has as many edits here as one with a limited grant may have.
    func isFull(for publisher: String) -> Bool { publishers[publisher]?.count ?? 0 >= limits.ofLimitedPublisher }

    /// Returns the digest of a queued edit; nil for other edits.
    func digest(of key: EditKey) -> String? { entries[key]?.edit.digest }

    /// The numbers of edits waiting for a predecessor, ready and running, and the arrival time of the oldest.
    var metrics: (waiting: Int, ready: Int, running: Int, oldest: Int64?) {
        let running = entries.values.count { $0.stage == .running || $0.stage == .ending }
        return (
            entries.count - ready.count - running, ready.count, running, entries.values.map(\.since).min()
        )
    }

    // MARK: State changes

    /// Returns true if an edit waits for a predecessor that is not in this queue.
    private func hasPredecessorElsewhere(_ key: EditKey) -> Bool {
        switch entries[key]?.stage {
        case .lookingUp, .unknownPredecessor, .behindOther: true
        default: false
        }
    }

    private mutating func set(_ key: EditKey, _ stage: Stage) {
        guard let entry = entries[key] else { return }
        if case .unknownPredecessor = entry.stage { unknownPredecessors -= 1 }
        if case .unknownPredecessor = stage { unknownPredecessors += 1 }
        entries[key]?.stage = stage
        switch stage {
        case .unknownPredecessor, .behindOther: waitingForOthers.insert(key)
        default: waitingForOthers.remove(key)
        }
        guard stage == .ready else { return }
        // Usually the newest edit, so the search from the end is short.
        let index = ready.lastIndex { $0.order < entry.order }.map { $0 + 1 } ?? 0
        ready.insert((entry.order, key), at: index)
    }

    private mutating func afterFailure(_ key: EditKey) -> Failure? {
        guard let edit = entries[key]?.edit else { return nil }
        guard edit.edit.mode == .append else {
            set(key, .ready)
            return nil
        }
        return end(
            key,
            .predecessorFailed,
            "the edit \(edit.edit.predecessor ?? "") that this one appends to has failed; publish both again or use"
                + " mode \"replace\""
        )
    }

    private mutating func end(_ key: EditKey, _ errorCode: ErrorCode, _ message: String) -> Failure {
        set(key, .ending)
        let edit = entries[key]?.edit
        return Failure(
            edit: edit
                ?? QueuedEdit(key: key, edit: PublishEdit(id: key.id, asset: .none, adjustments: .init()), digest: ""),
            errorCode: errorCode,
            message: message
        )
    }

    private mutating func remove(_ key: EditKey) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        publishers[key.publisher]?.count -= 1
        if publishers[key.publisher]?.count == 0 { publishers[key.publisher] = nil }
        waitingForOthers.remove(key)
        switch entry.stage {
        case .unknownPredecessor: unknownPredecessors -= 1
        case .running: busyAssets.remove(entry.edit.edit.asset)
        case .ready: ready.removeAll { $0.key == key }
        default: break
        }
        if let predecessor = entry.edit.predecessor {
            successors[predecessor]?.remove(key)
            if successors[predecessor]?.isEmpty == true { successors[predecessor] = nil }
        }
    }

    private func formsCycle(from key: EditKey) -> Bool {
        var next = entries[key]?.edit.predecessor
        // An edit that ends because of a cycle may still be in the queue, so the search is bounded.
        for _ in 0..<entries.count {
            guard let current = next else { return false }
            if current == key { return true }
            next = entries[current]?.edit.predecessor
        }
        return false
    }
}
