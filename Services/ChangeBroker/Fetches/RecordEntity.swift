import PhotoModel

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

    /// The collection or list before and after the transaction; nil for an asset.
    var facts: (before: PhotoCollection?, after: PhotoCollection?) {
        switch self {
        case .asset: (nil, nil)
        case .collection(let states): states.map(PhotoCollection.collection)
        case .list(let states): states.map(PhotoCollection.list)
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

    /// The texts that predicates can test, by key, before and after the transaction together.
    var textSizes: [PredicateKey: TextSize] {
        var sizes: [PredicateKey: TextSize] = [:]
        switch self {
        case .asset(let states): states.forEach { $0.addTextSizes(of: .asset, to: &sizes) }
        case .collection(let states): states.forEach { $0.addTextSizes(of: .assetCollection, to: &sizes) }
        case .list(let states): states.forEach { $0.addTextSizes(of: .collectionList, to: &sizes) }
        }
        return sizes
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

// MARK: - Before and after

/// An entity before and after a transaction, by reference: an asset has a hundred parts with reference counts, all of
/// which a copy of the asset for each fetch would change.
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

    /// True if the transaction deleted the entity, false if it created the entity, nil if it changed the entity.
    var isDeleted: Bool? {
        if states.after == nil { return true }
        return states.before == nil ? false : nil
    }

    /// Calls a closure with the entity before and after the transaction.
    func forEach(_ body: (Entity) -> Void) {
        if let before = states.before { body(before.entity) }
        if let after = states.after { body(after.entity) }
    }

    /// Returns the results of a closure for the entity before and after the transaction.
    func map<Value>(_ transform: (Entity) -> Value) -> (before: Value?, after: Value?) {
        (states.before.map { transform($0.entity) }, states.after.map { transform($0.entity) })
    }

    /// Returns the change of the entity in a result; nil if it belongs to the result neither before nor after.
    func netChange(
        before keyBefore: (Entity) -> ResultKey?,
        after keyAfter: (Entity) -> ResultKey?
    ) -> NetChange? {
        var change = NetChange(id: id, isTouched: true)
        if let before = states.before { change.before = keyBefore(before.entity) }
        if let after = states.after { change.after = keyAfter(after.entity) }
        return change.before == nil && change.after == nil ? nil : change
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
