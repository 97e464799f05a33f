import PhotoModel
import Synchronization

/// A fetch whose result, or one of whose objects, is still referenced by the program. Observers are notified of the
/// changes that affect at least one interest (S-63).
final class Interest: Sendable {
    /// The fetch; nil if it cannot be evaluated in this process, so that every change may affect it.
    let fetch: Fetch?
    /// Objects that are observed in addition to those of the fetch.
    let objects: Set<ObjectID>
    /// Objects that an earlier transaction removed from the fetch. The program may still reference them.
    private let left = Mutex<Set<ObjectID>>([])

    init(_ description: FetchDescription) {
        fetch = try? Fetch(description)
        objects = fetch?.kind.object.map { [$0] } ?? []
    }

    init(objects: Set<ObjectID>) {
        fetch = nil
        self.objects = objects
    }

    /// Updates the objects that left the result; returns true if a transaction may have changed the result, one of its
    /// objects, or an object that left it.
    ///
    /// It must be called once for each transaction, in the order of transactions.
    func update(with record: ChangeRecord) -> Bool {
        let touchesObject = !objects.isEmpty && record.touchedIDs.contains(where: objects.contains)
        guard let fetch else { return touchesObject || objects.isEmpty }
        if fetch.kind.needsScope { return !record.touchedIDs.isEmpty }
        // No early return: each object that leaves the fetch must be stored.
        var isAffected = touchesObject
        for change in record.assets where affects(change.id, fetch.includes, change.before, change.after) {
            isAffected = true
        }
        for change in record.collections where affects(change.id, fetch.includes, change.before, change.after) {
            isAffected = true
        }
        for change in record.lists where affects(change.id, fetch.includes, change.before, change.after) {
            isAffected = true
        }
        return isAffected
    }

    private func affects<Entity>(
        _ id: ObjectID,
        _ includes: (Entity) -> Bool,
        _ before: Entity?,
        _ after: Entity?
    ) -> Bool {
        let (wasIncluded, isIncluded) = (before.map(includes) ?? false, after.map(includes) ?? false)
        return left.withLock { left in
            let hadLeft = left.contains(id)
            if isIncluded || after == nil { left.remove(id) } else if wasIncluded { left.insert(id) }
            return wasIncluded || isIncluded || hadLeft
        }
    }
}

extension ChangeRecord {
    /// The assets, collections and lists that the transaction touched.
    var touchedIDs: [ObjectID] { assets.map(\.id) + collections.map(\.id) + lists.map(\.id) }
}

/// The interests of the fetch results and objects that the program still references.
final class InterestRegistry: Sendable {
    private struct Reference: Sendable {
        weak let interest: Interest?
    }

    private struct State {
        var references: [Reference] = []
        var limit = 64
    }

    private let state = Mutex(State())

    func insert(_ interest: Interest) {
        state.withLock { state in
            if state.references.count >= state.limit {
                state.references.removeAll { $0.interest == nil }
                state.limit = max(64, state.references.count * 2)
            }
            state.references.append(Reference(interest: interest))
        }
    }

    /// Returns true if a transaction affects a fetch result or object that is still referenced.
    func update(with record: ChangeRecord) -> Bool {
        let interests = state.withLock { $0.references.compactMap(\.interest) }
        // No early return: each interest must store the objects that leave its fetch.
        return interests.reduce(false) { $1.update(with: record) || $0 }
    }
}
