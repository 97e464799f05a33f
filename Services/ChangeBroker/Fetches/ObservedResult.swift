import DequeModule
import PhotoModel

/// The result of observed fetches that is kept current, with a log of its latest changes. All fetches that differ only
/// in offset and limit share it.
final class ObservedResult {
    /// The fetch without offset and limit; with its scope, or the list of its limited grant, if it needs one.
    private(set) var fetch: Fetch
    /// The number of the result in the index.
    let number: Int
    /// The sequence of the result.
    private(set) var sequence: Int64
    /// The sequence after which the log is complete.
    private(set) var oldestComplete: Int64
    /// True if the object to which the fetch refers is deleted.
    private(set) var isDeleted: Bool
    /// The numbers of the fetches that show parts of the result.
    var windows: Set<Int> = []
    let tree: KeyTree
    /// The moments of a limited view, for the results that depend on them (`Fetch.dependsOnViewMoments`).
    private(set) var moments: ViewMoments?
    private var log: Deque<(sequence: Int64, changes: [NetChange], bytes: Int)> = []
    /// The number of entity changes in the log.
    private var loggedCount = 0
    /// The approximate memory of the log in bytes.
    private(set) var logBytes = 0
    /// The entities that left the result although they did not change, according to the log, each with the sequence at
    /// which it left; removed when a later transaction changes the entity.
    private var departed: [ObjectID: Int64] = [:]
    /// The moments and lists of moments in ``departed``, as they were in the result.
    private var departedFacts: [ObjectID: PhotoCollection] = [:]

    /// The maximum number of entity changes in the log.
    static let maxLogged = 1000

    init(
        _ fetch: Fetch,
        number: Int,
        tree: KeyTree,
        moments: ViewMoments? = nil,
        at sequence: Int64,
        isDeleted: Bool = false
    ) {
        self.moments = moments
        self.fetch = fetch
        self.number = number
        self.tree = tree
        self.sequence = sequence
        self.oldestComplete = sequence
        self.isDeleted = isDeleted
    }

    /// The number of objects.
    var rows: Int { tree.count }
    /// The approximate memory of the objects in bytes.
    var resultBytes: Int { tree.bytes + tree.count * 6 + (moments?.bytes ?? 0) }
    /// The approximate memory of the objects and of the log in bytes.
    var bytes: Int { resultBytes + logBytes }

    /// The effects of a transaction besides its net changes.
    struct Effects {
        /// The scope after the transaction; nil if it is the same.
        var scope: Set<ObjectID>?
        /// True if the object of the fetch is deleted; nil if that has not changed.
        var isDeleted: Bool?
    }

    /// Applies a transaction.
    ///
    /// - Parameter changes: empty if the transaction touches no entity of the result
    /// - Returns: the builder of the change details; nil if the result has not changed
    /// - Throws: an error if the changes do not fit this result
    func advance(
        to sequence: Int64,
        _ changes: [NetChange],
        _ effects: Effects = Effects()
    ) throws(ChangeDetailsError) -> ChangeDetailsBuilder? {
        guard sequence > self.sequence else { return nil }
        self.sequence = sequence
        if let scope = effects.scope { fetch = fetch.with(scope, at: sequence) }
        if let isDeleted = effects.isDeleted { self.isDeleted = isDeleted }
        guard !changes.isEmpty else { return nil }
        for change in changes where change.before != change.after {
            if let key = change.before, !tree.remove(key.bytes) { throw ChangeDetailsError(entity: change.id) }
        }
        for change in changes where change.before != change.after {
            if let key = change.after, !tree.insert(key.bytes) { throw ChangeDetailsError(entity: change.id) }
        }
        let weight = changes.reduce(64) { $0 + $1.bytes } + noteDepartures(changes) * (moments == nil ? 64 : 1000)
        log.append((sequence, changes, weight))
        loggedCount += changes.count
        logBytes += weight
        while loggedCount > Self.maxLogged { removeOldest() }
        return ChangeDetailsBuilder(changes, tree)
    }

    /// Updates ``departed``.
    ///
    /// - Returns: the number of entities that have left
    private func noteDepartures(_ changes: [NetChange]) -> Int {
        var count = 0
        for change in changes {
            if !change.isTouched, change.before != nil, change.after == nil {
                departed[change.id] = sequence
                count += 1
            } else if !departed.isEmpty {
                departed[change.id] = nil
            }
        }
        return count
    }

    // MARK: Changes

    /// Returns the change of an entity that has left the result, and belongs to it neither before nor after the change;
    /// nil for other entities. The entity then counts as changed if it enters the result again with the same key.
    func changeOutsideResult(of id: ObjectID) -> NetChange? {
        departed.isEmpty || departed[id] == nil ? nil : NetChange(id: id, isTouched: true)
    }

    /// Returns the changes of a result that was read again: the entities that entered and left it, and those that the
    /// record changed in place.
    func reload(_ keys: LoadedKeys, at record: ChangeRecord, _ effects: inout Effects) -> [NetChange] {
        if let members = keys.members {
            let momentChanges = replaceMoments(members, &effects)
            if fetch.kind.entityClass != .asset { return momentChanges }
        }
        var changes = keys.keys.changes(since: tree)
        for position in 0..<record.entityCount {
            let entity = record.entity(at: position)
            guard changes.byEntity[entity.id] == nil, departed[entity.id] == nil else {
                changes.touch(entity.id)
                continue
            }
            // The keys determine what is in the result, so the predicate, which may take long, is not evaluated.
            let (before, after) = fetch.keys(of: entity)
            guard let before, before == after, tree.contains(before.bytes) else { continue }
            changes.add(NetChange(id: entity.id, before: before, after: after, isTouched: true))
        }
        return changes.all
    }

    /// Applies a transaction to the moments of a limited view.
    ///
    /// - Parameters:
    ///   - after: the fetch with the list after the transaction; nil if it is the same
    ///   - effects: `isDeleted` is set if the moment, or the list of moments, that the fetch names leaves or
    ///     enters the view
    /// - Returns: the net changes of a result of collections or lists; none for one of assets
    func momentChanges(by record: ChangeRecord, after: Fetch?, _ effects: inout Effects) -> [NetChange] {
        let granted = (after ?? fetch).granted?.ids ?? []
        return netChanges(moments?.apply(record, granted: granted) ?? [], &effects)
    }

    private func replaceMoments(
        _ members: [ObjectID: MomentMember],
        _ effects: inout Effects
    ) -> [NetChange] {
        let (before, after) = (moments ?? ViewMoments(), ViewMoments(members))
        moments = after
        return netChanges(before.changes(to: after), &effects)
    }

    private func netChanges(_ entities: [RecordEntity], _ effects: inout Effects) -> [NetChange] {
        if let object = fetch.kind.object, let exists = moments?.contains(object), exists == isDeleted {
            effects.isDeleted = !exists
        }
        return entities.compactMap { entity in
            guard var change = fetch.netChange(entity) else { return nil }
            // A moment leaves the view with its last asset, and may enter it again unchanged.
            if change.after == nil {
                departedFacts[change.id] = entity.facts.before
                change.isTouched = false
            } else if change.before == nil {
                change.isTouched = departedFacts.removeValue(forKey: change.id) != entity.facts.after
            }
            return change
        }
    }

    // MARK: Log

    /// Removes the oldest changes until the log takes at most a number of bytes; earlier changes are read from the
    /// history.
    func shortenLog(to bytes: Int) { while logBytes > bytes, !log.isEmpty { removeOldest() } }

    private func removeOldest() {
        guard let oldest = log.popFirst() else { return }
        oldestComplete = oldest.sequence
        loggedCount -= oldest.changes.count
        logBytes -= oldest.bytes
        guard !departed.isEmpty else { return }
        for change in oldest.changes where departed[change.id] == oldest.sequence {
            (departed[change.id], departedFacts[change.id]) = (nil, nil)
        }
    }

    /// Returns the changes after a sequence, which must be ``oldestComplete`` or later.
    func changes(after sequence: Int64) -> NetChanges {
        var net = NetChanges()
        for entry in log where entry.sequence > sequence { net.add(entry.changes) }
        return net
    }
}

/// The error of a transaction that does not match the result, so that the result has to be loaded again.
struct ChangeDetailsError: Error {
    let entity: ObjectID
}
