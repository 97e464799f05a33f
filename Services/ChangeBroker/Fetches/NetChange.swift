import PhotoModel

/// The net change of one entity in a result between two sequences: its key before and its key after.
struct NetChange: Sendable, Hashable {
    let id: ObjectID
    /// Nil if the entity was not in the result.
    var before: ResultKey?
    var after: ResultKey?
    /// True if a transaction has changed the entity itself, not only the scope of the fetch: with a folder that was moved,
    /// or a list of assets that a client may see, entities leave the result and enter it again unchanged.
    var isTouched = false

    /// The approximate memory in bytes: the value, the text of the identifier and the keys, each an object of its own.
    var bytes: Int {
        MemoryLayout<NetChange>.stride + 64 + (before.map { $0.bytes.count + 32 } ?? 0)
            + (after.map { $0.bytes.count + 32 } ?? 0)
    }
}

/// Accumulates net changes: for each entity the first key before and the last key after.
struct NetChanges: Sendable {
    private(set) var changes: [ObjectID: NetChange] = [:]

    mutating func add(_ change: NetChange) {
        if changes[change.id] != nil {
            changes[change.id]?.after = change.after
            if change.isTouched { changes[change.id]?.isTouched = true }
        } else {
            changes[change.id] = change
        }
    }

    mutating func add(_ changes: some Sequence<NetChange>) { for change in changes { add(change) } }

    /// Records that a transaction has changed an entity itself.
    mutating func touch(_ id: ObjectID) { changes[id, default: NetChange(id: id)].isTouched = true }

    /// Sets the change of one entity.
    mutating func replace(_ change: NetChange) { changes[change.id] = change }

    var count: Int { changes.count }
    /// The changes without those of entities that left the result and entered it again unchanged.
    var all: [NetChange] { changes.values.filter { $0.isTouched || $0.before != $0.after } }
}

extension ChangeRecord {
    /// The number of assets, collections and lists.
    var entityCount: Int { assets.count + collections.count + lists.count }

    /// Returns an entity by its position among the assets, then the collections, then the lists.
    func entity(at position: Int) -> RecordEntity {
        var position = position
        if position < assets.count { return .asset(EntityStates(assets[position])) }
        position -= assets.count
        if position < collections.count { return .collection(EntityStates(collections[position])) }
        return .list(EntityStates(lists[position - collections.count]))
    }
}

extension Fetch {
    /// Returns the effect of a transaction on the result before offset and limit; only touched entities appear.
    ///
    /// - Parameter after: this fetch with the scope after the transaction; nil if it is the same
    func netChanges(of record: ChangeRecord, after: Fetch? = nil) -> [NetChange] {
        (0..<record.entityCount).compactMap { netChange(record.entity(at: $0), after: after) }
    }

    /// Returns the same, with the time that it took; nil for the changes if that is longer than a limit.
    func netChanges(of record: ChangeRecord, within limit: Duration) -> (changes: [NetChange]?, time: Duration) {
        let start = ContinuousClock.now
        var changes: [NetChange] = []
        for position in 0..<record.entityCount {
            if let change = netChange(record.entity(at: position)) { changes.append(change) }
            guard ContinuousClock.now - start <= limit else { return (nil, ContinuousClock.now - start) }
        }
        return (changes, ContinuousClock.now - start)
    }

    /// Returns the effect of a transaction on one entity of the result.
    ///
    /// - Parameter after: this fetch with the scope after the transaction; nil if it is the same
    func netChange(_ entity: RecordEntity, after: Fetch? = nil) -> NetChange? {
        switch entity {
        case .asset(let states):
            guard case .assets = kind else { return nil }
            return states.netChange(before: key) { (after ?? self).key($0) }
        case .collection(let states): return states.netChange(before: key) { (after ?? self).key($0) }
        case .list(let states): return states.netChange(before: key) { (after ?? self).key($0) }
        }
    }

    /// Returns the keys of an entity before and after a transaction, whether or not it belongs to the result.
    func keys(of entity: RecordEntity) -> (before: ResultKey?, after: ResultKey?) {
        switch entity {
        case .asset(let states): states.both { resultKey(of: $0) }
        case .collection(let states): states.both { resultKey(of: .collection($0)) }
        case .list(let states): states.both { resultKey(of: .list($0)) }
        }
    }

    private func key(_ asset: Asset) -> ResultKey? { includes(asset) ? resultKey(of: asset) : nil }

    private func key(_ collection: AssetCollection) -> ResultKey? {
        includes(collection) ? resultKey(of: .collection(collection)) : nil
    }

    private func key(_ list: CollectionList) -> ResultKey? { includes(list) ? resultKey(of: .list(list)) : nil }
}
