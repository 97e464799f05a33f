import PhotoModel

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

    /// True if the transaction deleted the entity, false if it created the entity, nil if it changed the entity.
    var isDeleted: Bool? {
        if states.after == nil { return true }
        return states.before == nil ? false : nil
    }

    /// Calls a closure with the entity as it was and as it is.
    func each(_ body: (Entity) -> Void) {
        if let before = states.before { body(before.entity) }
        if let after = states.after { body(after.entity) }
    }

    /// Returns the results of a closure for the entity as it was and as it is.
    func both<Value>(_ value: (Entity) -> Value) -> (before: Value?, after: Value?) {
        (states.before.map { value($0.entity) }, states.after.map { value($0.entity) })
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
