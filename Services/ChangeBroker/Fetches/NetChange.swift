import PhotoModel

/// The net change of one entity in a result between two sequences: its key before and its key after.
struct NetChange: Sendable, Hashable {
    let id: ObjectID
    /// Nil if the entity was not in the result.
    var before: ResultKey?
    var after: ResultKey?

    /// Memory for it, about: itself, the text of the identifier and the keys, each an object of its own.
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
        } else {
            changes[change.id] = change
        }
    }

    mutating func add(_ changes: some Sequence<NetChange>) { for change in changes { add(change) } }

    /// Sets the change of one entity.
    mutating func replace(_ change: NetChange) { changes[change.id] = change }

    var count: Int { changes.count }
    var all: [NetChange] { Array(changes.values) }
}

/// An entity before and after a transaction, by reference: an asset has a hundred parts with reference counts, which
/// would be counted again with every copy, for every fetch.
struct EntityStates<Entity: Sendable>: Sendable {
    private final class State: Sendable {
        let entity: Entity
        init(_ entity: Entity) { self.entity = entity }
    }

    let id: ObjectID
    private let states: (before: State?, after: State?)

    init(_ id: ObjectID, before: Entity?, after: Entity?) {
        self.id = id
        states = (before.map(State.init), after.map(State.init))
    }

    /// Whether the transaction deleted the entity; false if it created it, nil if it was there before and after.
    var isDeleted: Bool? {
        if states.after == nil { return true }
        return states.before == nil ? false : nil
    }

    /// Calls a closure with the entity as it was and as it is.
    func each(_ body: (Entity) -> Void) {
        if let before = states.before { body(before.entity) }
        if let after = states.after { body(after.entity) }
    }

    /// Returns the change of the entity in a result; nil if it belongs to the result neither before nor after.
    func netChange(
        before keyBefore: (Entity) -> ResultKey?,
        after keyAfter: (Entity) -> ResultKey?
    ) -> NetChange? {
        var change = NetChange(id: id)
        if let before = states.before { change.before = keyBefore(before.entity) }
        if let after = states.after { change.after = keyAfter(after.entity) }
        return change.before == nil && change.after == nil ? nil : change
    }
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

extension EntityStates {
    init(_ change: EntityChange<Asset>) where Entity == Asset {
        self.init(change.id, before: change.before, after: change.after)
    }

    init(_ change: EntityChange<AssetCollection>) where Entity == AssetCollection {
        self.init(change.id, before: change.before, after: change.after)
    }

    init(_ change: EntityChange<CollectionList>) where Entity == CollectionList {
        self.init(change.id, before: change.before, after: change.after)
    }
}

/// One entity of a change record.
enum RecordEntity: Sendable {
    case asset(EntityStates<Asset>)
    case collection(EntityStates<AssetCollection>)
    case list(EntityStates<CollectionList>)

    var id: ObjectID {
        switch self {
        case .asset(let states): states.id
        case .collection(let states): states.id
        case .list(let states): states.id
        }
    }

    /// See ``EntityStates/isDeleted``.
    var isDeleted: Bool? {
        switch self {
        case .asset(let states): states.isDeleted
        case .collection(let states): states.isDeleted
        case .list(let states): states.isDeleted
        }
    }
}

extension Fetch {
    /// Returns the effect of a transaction on the result before offset and limit; only touched entities appear.
    ///
    /// - Parameter after: this fetch with the scope after the transaction; nil if it is the same
    func netChanges(of record: ChangeRecord, after: Fetch? = nil) -> [NetChange] {
        (0..<record.entityCount).compactMap { netChange(record.entity(at: $0), after: after) }
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

    private func key(_ asset: Asset) -> ResultKey? { includes(asset) ? resultKey(of: asset) : nil }

    private func key(_ collection: AssetCollection) -> ResultKey? {
        includes(collection) ? resultKey(of: .collection(collection)) : nil
    }

    private func key(_ list: CollectionList) -> ResultKey? { includes(list) ? resultKey(of: .list(list)) : nil }
}
