/// The observers of one kind that a library has. They are not retained.
struct ObserverList<Observer> {
    private struct Reference {
        let id: ObjectIdentifier
        weak let observer: (any AnyObject & Sendable)?
    }

    private var references: [Reference] = []

    /// True if no observer is registered; one that was released may count until the next change of the list.
    var isEmpty: Bool { references.isEmpty }

    /// The observers that were not released.
    var observers: [Observer] { references.compactMap { $0.observer as? Observer } }

    func contains(_ observer: any AnyObject & Sendable) -> Bool {
        references.contains { $0.id == ObjectIdentifier(observer) }
    }

    /// Adds an observer as the last, also if it is in the list.
    ///
    /// - Returns: as ``remove(_:)``
    mutating func add(_ observer: any AnyObject & Sendable) -> [AnyObject?] {
        defer { references.append(Reference(id: ObjectIdentifier(observer), observer: observer)) }
        return remove(observer)
    }

    /// Removes an observer, and the references to released ones.
    ///
    /// - Returns: observers to release outside of the lock, because a `deinit` may call `unregister`
    mutating func remove(_ observer: any AnyObject & Sendable) -> [AnyObject?] {
        let retained = references.map(\.observer)
        references = zip(references, retained).filter { $0.id != ObjectIdentifier(observer) && $1 != nil }.map(\.0)
        return retained
    }

    mutating func removeAll() { references = [] }
}
