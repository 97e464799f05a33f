import PhotoModel

/// The net change of one entity in a result between two sequences: its key before and its key after.
struct NetChange: Sendable, Hashable {
    let id: ObjectID
    /// Nil if the entity was not in the result.
    var before: ResultKey?
    var after: ResultKey?

    /// Memory for it, about: itself, the text of the identifier and the keys, each an object of its own.
    var bytes: Int {
        let keys = [before, after].reduce(0) { $0 + ($1.map { $0.bytes.count + 32 } ?? 0) }
        return MemoryLayout<NetChange>.stride + 64 + keys
    }
}

/// Accumulates net changes: for each entity the first key before and the last key after.
struct NetChanges: Sendable {
    private(set) var changes: [ObjectID: NetChange] = [:]

    mutating func add(_ change: NetChange) {
        if changes[change.id] != nil {
            changes[change.id]?.after = change.after
        } else {
            changes[change.id] = change
        }
    }

    mutating func add(_ changes: some Sequence<NetChange>) { for change in changes { add(change) } }

    var count: Int { changes.count }
    var all: [NetChange] { Array(changes.values) }
}

extension Fetch {
    /// Returns the effect of a transaction on the result before offset and limit; only touched entities appear.
    func netChanges(of record: ChangeRecord) -> [NetChange] {
        record.assets.compactMap(netChange) + record.collections.compactMap(netChange)
            + record.lists.compactMap(netChange)
    }

    func netChange(_ change: EntityChange<Asset>) -> NetChange? {
        guard case .assets = kind else { return nil }
        func key(_ asset: Asset) -> ResultKey? { includes(asset) ? resultKey(of: asset) : nil }
        return netChange(change.id, change.before.flatMap(key), change.after.flatMap(key))
    }

    func netChange(_ change: EntityChange<AssetCollection>) -> NetChange? {
        func key(_ collection: AssetCollection) -> ResultKey? {
            includes(collection) ? resultKey(of: .collection(collection)) : nil
        }
        return netChange(change.id, change.before.flatMap(key), change.after.flatMap(key))
    }

    func netChange(_ change: EntityChange<CollectionList>) -> NetChange? {
        func key(_ list: CollectionList) -> ResultKey? { includes(list) ? resultKey(of: .list(list)) : nil }
        return netChange(change.id, change.before.flatMap(key), change.after.flatMap(key))
    }

    private func netChange(_ id: ObjectID, _ before: ResultKey?, _ after: ResultKey?) -> NetChange? {
        before == nil && after == nil ? nil : NetChange(id: id, before: before, after: after)
    }
}
