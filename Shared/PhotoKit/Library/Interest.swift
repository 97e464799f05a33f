import PhotoModel
import Synchronization

/// The fetch whose result, or one of whose objects, the program holds. Observers hear of changes that affect one (S-63).
final class Interest: Sendable {
    /// The fetch; nil if it cannot be evaluated here, so that every change may affect it.
    let fetch: Fetch?
    /// Objects that are of interest besides the fetch.
    let objects: Set<ObjectID>
    /// Objects that were in the fetch and have left it by a change that was asked about. The program may still hold them.
    private let left = Mutex<Set<ObjectID>>([])

    init(_ description: FetchDescription) {
        fetch = try? Fetch(description)
        objects = fetch?.kind.object.map { [$0] } ?? []
    }

    init(objects: Set<ObjectID>) {
        fetch = nil
        self.objects = objects
    }

    /// Returns true if a transaction may have changed the result or one of its objects, also of those that have left it.
    ///
    /// It is called once for each transaction, in their order.
    func isAffected(by record: ChangeRecord) -> Bool {
        let touchesObject = !objects.isEmpty && record.touchedIDs.contains(where: objects.contains)
        guard let fetch else { return touchesObject || objects.isEmpty }
        if fetch.kind.needsScope { return !record.touchedIDs.isEmpty }
        // All are looked at, so that each object that leaves the fetch is remembered.
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
        let (was, isNow) = (before.map(includes) ?? false, after.map(includes) ?? false)
        return left.withLock { left in
            let hadLeft = left.contains(id)
            if isNow || after == nil { left.remove(id) } else if was { left.insert(id) }
            return was || isNow || hadLeft
        }
    }
}

extension ChangeRecord {
    /// The assets, collections and lists that the transaction touched.
    var touchedIDs: [ObjectID] { assets.map(\.id) + collections.map(\.id) + lists.map(\.id) }
}

/// The interests that are alive.
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

    /// Returns true if a transaction affects anything that was fetched and is still held.
    func isAffected(by record: ChangeRecord) -> Bool {
        let interests = state.withLock { $0.references.compactMap(\.interest) }
        // All are asked, because each remembers the objects that leave its fetch.
        return interests.reduce(false) { $1.isAffected(by: record) || $0 }
    }
}
