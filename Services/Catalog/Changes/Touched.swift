import PhotoModel

/// The entities that a transaction has touched, in their states before and now.
struct Touched<Entity> {
    private(set) var order: [ObjectID] = []
    private(set) var before: [ObjectID: Entity?] = [:]
    private(set) var current: [ObjectID: Entity?] = [:]

    var count: Int { order.count }

    /// Returns the current state of an entity; `nil` if it is untouched, `.some(nil)` if it was deleted.
    func state(of id: ObjectID) -> Entity?? { current[id] }

    /// Sets the current state of an entity.
    ///
    /// - Parameter original: returns the state before the transaction; called at the first touch only
    mutating func set(_ id: ObjectID, to entity: Entity?, from original: (ObjectID) throws -> Entity?) rethrows {
        if current[id] == nil {
            before[id] = .some(try original(id))
            order.append(id)
        }
        current[id] = .some(entity)
    }

    /// Returns the states before and now, in the order in which the entities were first touched.
    func changes() -> [(id: ObjectID, before: Entity?, current: Entity?)] {
        order.map { ($0, before[$0] ?? nil, current[$0] ?? nil) }
    }
}
