import Basics
import PhotoModel
import Synchronization

/// The transient collections and lists of clients (S-30, S-31). They are only in memory, are visible only to their
/// client, and expire ten minutes after their last use.
final class TransientCollectionRegistry: Sendable {
    /// The limits of transient collections.
    struct Limits: Sendable {
        /// The time without use after which a collection expires, in microseconds.
        var lease: Int64 = 600_000_000
        /// The maximum number of collections of one identity.
        var perIdentity = 32
        /// The maximum number of members of all collections together, and of those of one identity.
        var members = 2_000_000
        var membersPerIdentity = 500_000
    }

    private struct Entry {
        var members: [ObjectID]
        var title: String?
        /// Microseconds since 1970.
        var creationDate: Int64
    }

    private struct State {
        var leases: LeaseTable<ObjectID>
        var entries: [ObjectID: Entry] = [:]

        mutating func remove(_ id: ObjectID) {
            leases.remove(id)
            entries[id] = nil
        }
    }

    private let state: Mutex<State>
    private let clock: MonotonicClock
    /// Returns the microseconds since 1970.
    private let wallClock: @Sendable () -> Int64
    let limits: Limits

    init(
        clock: MonotonicClock = .system,
        wallClock: @escaping @Sendable () -> Int64 = { 0 },
        limits: Limits = Limits()
    ) {
        self.clock = clock
        self.wallClock = wallClock
        self.limits = limits
        state = Mutex(State(leases: LeaseTable(duration: limits.lease)))
    }

    var count: Int { state.withLock { $0.entries.count } }

    /// Stores members under a new identifier.
    ///
    /// - Throws: `limit_exceeded`, `busy`
    func create(
        _ kind: ObjectKind,
        _ members: [ObjectID],
        title: String? = nil,
        identity: String
    ) throws(FetchError) -> ObjectID {
        var random = SystemRandomNumberGenerator()
        let id = ObjectID.transient(kind, using: &random)
        let now = clock.nowMicroseconds()
        try state.withLock { state throws(FetchError) in
            for expired in state.leases.expired(now: now) { state.remove(expired) }
            let own = state.leases.keys(of: identity).compactMap { state.entries[$0]?.members }
            let all = state.entries.values.reduce(0) { $0 + $1.members.count }
            guard own.count < limits.perIdentity,
                own.reduce(0, { $0 + $1.count }) + members.count <= limits.membersPerIdentity
            else {
                throw FetchError.tooManyTransients(limit: limits.perIdentity, members: limits.membersPerIdentity)
            }
            guard all + members.count <= limits.members else {
                throw FetchError.transientsFull(members: limits.members)
            }
            state.leases.insert(id, owner: identity, now: now)
            state.entries[id] = Entry(members: members, title: title, creationDate: wallClock())
        }
        return id
    }

    /// Returns the members of a client's collection, and renews its lease.
    ///
    /// - Throws: `handle_expired`, also for collections of other identities
    func members(of id: ObjectID, identity: String) throws(FetchError) -> [ObjectID] {
        guard let entry = entry(id, identity: identity) else {
            throw FetchError.expired(id)
        }
        return entry.members
    }

    private func entry(_ id: ObjectID, identity: String) -> Entry? {
        let now = clock.nowMicroseconds()
        return state.withLock { state in
            state.leases.renew(id, owner: identity, now: now) ? state.entries[id] : nil
        }
    }

    /// Returns a client's collection or list as an entity, and renews its lease; nil if the client has none with this
    /// identifier.
    func entity(_ id: ObjectID, identity: String) -> PhotoCollection? {
        guard let entry = entry(id, identity: identity) else { return nil }
        if id.kind == .collectionList {
            var list = CollectionList(id: id)
            list.title = entry.title
            list.childCount = entry.members.count
            (list.creationDate, list.modificationDate) = (entry.creationDate, entry.creationDate)
            return .list(list)
        }
        var collection = AssetCollection(id: id)
        collection.title = entry.title
        collection.estimatedAssetCount = entry.members.count
        (collection.creationDate, collection.modificationDate) = (entry.creationDate, entry.creationDate)
        return .collection(collection)
    }

    /// Returns the members of a client's list and of the transient lists in it, with the members of the transient
    /// collections in them: stored collections and lists, and assets, each once.
    ///
    /// - Throws: `handle_expired` if the list itself has expired; expired ones in it are left out
    func contents(of list: ObjectID, identity: String) throws(FetchError) -> (
        stored: Set<ObjectID>, assets: Set<ObjectID>
    ) {
        var (stored, assets, visited): (Set<ObjectID>, Set<ObjectID>, Set<ObjectID>) = ([], [], [list])
        var pending = try members(of: list, identity: identity)
        while let id = pending.popLast() {
            guard id.isTransient else {
                if id.kind == .asset { assets.insert(id) } else { stored.insert(id) }
                continue
            }
            if visited.insert(id).inserted, let entry = entry(id, identity: identity) { pending += entry.members }
        }
        return (stored, assets)
    }

    /// Removes all collections of an identity that may no longer read.
    func releaseAll(of identity: String) {
        state.withLock { state in
            for id in state.leases.keys(of: identity) { state.remove(id) }
        }
    }

    func release(_ id: ObjectID, identity: String) {
        state.withLock { state in
            if state.leases.isOwned(id, by: identity) { state.remove(id) }
        }
    }
}
