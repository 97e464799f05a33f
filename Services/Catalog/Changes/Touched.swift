import PhotoModel

/// The entities that a transaction has touched, in their states before and now.
struct Touched<Entity> {
    typealias Change = (id: ObjectID, before: Entity?, current: Entity?)

    /// The states before and now, in the order in which the entities were first touched.
    private(set) var changes: [Change] = []
    private var positions: [ObjectID: Int] = [:]

    var count: Int { changes.count }

    /// The entities in the order in which they were first touched.
    var order: [ObjectID] { changes.map(\.id) }

    /// Removes all entities and returns their states.
    mutating func take() -> [Change] {
        defer { self = Touched() }
        return changes
    }

    /// Returns the current state of an entity; `nil` if it is untouched, `.some(nil)` if it was deleted.
    func state(of id: ObjectID) -> Entity?? {
        guard let position = positions[id] else { return nil }
        return .some(changes[position].current)
    }

    /// Sets the current state of an entity.
    ///
    /// - Parameter original: returns the state before the transaction; called at the first touch only
    mutating func set(_ id: ObjectID, to entity: Entity?, from original: (ObjectID) throws -> Entity?) rethrows {
        if let position = positions[id] {
            changes[position].current = entity
        } else {
            changes.append((id, try original(id), entity))
            positions[id] = changes.count - 1
        }
    }
}
