import PhotoModel
import Synchronization

/// The fetch whose result, or one of whose objects, the program holds. Observers hear of changes that affect one (S-63).
final class Interest: Sendable {
    /// The fetch; nil if it cannot be evaluated here, so that every change may affect it.
    let fetch: Fetch?
    /// Objects that are of interest besides the fetch.
    let objects: Set<ObjectID>

    init(_ description: FetchDescription) {
        fetch = try? Fetch(description)
        objects = fetch?.kind.object.map { [$0] } ?? []
    }

    init(objects: Set<ObjectID>) {
        fetch = nil
        self.objects = objects
    }

    /// Returns true if a transaction may have changed the result or one of its objects.
    func isAffected(by record: ChangeRecord) -> Bool {
        if !objects.isEmpty, record.touchedIDs.contains(where: objects.contains) { return true }
        guard let fetch else { return objects.isEmpty }
        if fetch.kind.needsScope { return !record.touchedIDs.isEmpty }
        return record.assets.contains { affects(fetch.includes, $0.before, $0.after) }
            || record.collections.contains { affects(fetch.includes, $0.before, $0.after) }
            || record.lists.contains { affects(fetch.includes, $0.before, $0.after) }
    }

    private func affects<Entity>(_ includes: (Entity) -> Bool, _ before: Entity?, _ after: Entity?) -> Bool {
        before.map(includes) ?? false || after.map(includes) ?? false
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
        return interests.contains { $0.isAffected(by: record) }
    }
}
