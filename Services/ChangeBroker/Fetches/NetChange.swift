import PhotoModel

/// The net change of one entity in a result between two sequences: its key before and its key after.
struct NetChange: Sendable, Hashable {
    let id: ObjectID
    /// Nil if the entity was not in the result.
    var before: ResultKey?
    /// Nil if the entity is no longer in the result.
    var after: ResultKey?
    /// True if a transaction has changed the entity itself. If only the scope of the fetch changes, for example because
    /// a folder is moved, entities may leave the result and enter it again unchanged.
    var isTouched = false

    /// The approximate memory in bytes: the value, the text of the identifier and the keys, each an object of its own.
    var bytes: Int {
        MemoryLayout<NetChange>.stride + 64 + (before.map { $0.bytes.count + 32 } ?? 0)
            + (after.map { $0.bytes.count + 32 } ?? 0)
    }
}

/// Accumulates net changes: for each entity the first key before and the last key after.
struct NetChanges: Sendable {
    private(set) var byEntity: [ObjectID: NetChange] = [:]

    mutating func add(_ change: NetChange) {
        if byEntity[change.id] != nil {
            byEntity[change.id]?.after = change.after
            if change.isTouched { byEntity[change.id]?.isTouched = true }
        } else {
            byEntity[change.id] = change
        }
    }

    mutating func add(_ changes: some Sequence<NetChange>) { for change in changes { add(change) } }

    /// Records that a transaction has changed an entity itself.
    mutating func touch(_ id: ObjectID) { byEntity[id, default: NetChange(id: id)].isTouched = true }

    /// Sets the change of one entity.
    mutating func replace(_ change: NetChange) { byEntity[change.id] = change }

    var count: Int { byEntity.count }
    /// The changes without those of entities that left the result and entered it again unchanged.
    var all: [NetChange] { byEntity.values.filter { $0.isTouched || $0.before != $0.after } }
}

/// The net changes of a result between a client's token and the beginning of the result's log.
struct EarlierChanges: Sendable {
    /// The token up to which the changes are included.
    private(set) var token: ChangeToken
    private(set) var changes = NetChanges()
    /// The size of the records that were read, in bytes.
    private(set) var bytes = 0
    /// The time that the evaluation of the records has taken.
    private(set) var evaluationTime = Duration.zero

    init(after token: ChangeToken) { self.token = token }

    /// Adds the changes of the next record.
    mutating func add(_ found: [NetChange], at sequence: Int64, _ size: Int, took time: Duration = .zero) {
        changes.add(found)
        bytes += size
        evaluationTime += time
        advance(to: sequence)
    }

    /// Records that there are no further changes up to a sequence.
    mutating func advance(to sequence: Int64) {
        token = ChangeToken(library: token.library, sequence: max(token.sequence, sequence))
    }
}

extension Fetch {
    /// Returns the effect of a transaction on the result before offset and limit; only touched entities appear.
    ///
    /// - Parameter after: this fetch with the scope after the transaction; nil if it is the same
    func netChanges(of record: ChangeRecord, after: Fetch? = nil) -> [NetChange] {
        (0..<record.entityCount).compactMap { netChange(record.entity(at: $0), after: after) }
    }

    /// Returns the effect of a transaction on the result, with the time of the evaluation; nil for the changes if the
    /// evaluation takes longer than a limit.
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

    /// Returns the keys of an entity before and after a transaction, even if it does not belong to the result.
    func keys(of entity: RecordEntity) -> (before: ResultKey?, after: ResultKey?) {
        switch entity {
        case .asset(let states): states.map { resultKey(of: $0) }
        case .collection(let states): states.map { resultKey(of: .collection($0)) }
        case .list(let states): states.map { resultKey(of: .list($0)) }
        }
    }

    private func key(_ asset: Asset) -> ResultKey? { includes(asset) ? resultKey(of: asset) : nil }

    private func key(_ collection: AssetCollection) -> ResultKey? {
        includes(collection) ? resultKey(of: .collection(collection)) : nil
    }

    private func key(_ list: CollectionList) -> ResultKey? { includes(list) ? resultKey(of: .list(list)) : nil }
}
