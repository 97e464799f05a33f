import PhotoModel

/// The library state that the rules of a transaction read from the database, within the write transaction that also
/// writes their result.
///
/// Most functions only forward to a store, so that the rules need no SQL and tests can replace the database.
struct StoredLibraryState: LibraryState {
    let assets: AssetStore
    let collections: CollectionStore
    let edits: EditStore
    let history: HistoryStore
    let imageDigests: ImageDigestStore
    /// A cache of the assets read so far. Nothing is written until the transaction ends, so each asset is read once.
    private let known = RowCache()

    private final class RowCache {
        var assets: [ObjectID: StoredAsset?] = [:]
        /// The bytes of the texts of assets that were read ahead.
        var textBytes = 0
    }

    init(_ database: SQLConnection) {
        assets = AssetStore(database: database)
        collections = CollectionStore(database: database)
        edits = EditStore(database: database)
        history = HistoryStore(database: database)
        imageDigests = ImageDigestStore(database: database)
    }

    func asset(_ id: ObjectID) throws -> Asset? {
        if let stored = known.assets[id] { return stored?.asset }
        let stored = try assets.stored(id)
        known.assets[id] = .some(stored)
        return stored?.asset
    }

    /// The number of assets that are read together, and the bytes of their texts after which none are read ahead: one
    /// asset may have megabytes, and the transaction may be refused before it needs the asset.
    private static let prefetched = (assets: 50, textBytes: 8 << 20)

    func prefetch(_ ids: [ObjectID]) throws {
        for start in stride(from: 0, to: ids.count, by: Self.prefetched.assets) {
            guard known.textBytes <= Self.prefetched.textBytes else { return }
            let part = Array(ids[start..<min(start + Self.prefetched.assets, ids.count)])
            for id in part where known.assets[id] == nil { known.assets[id] = .some(nil) }
            for stored in try assets.stored(part) {
                known.assets[stored.asset.id] = .some(stored)
                known.textBytes += stored.asset.textBytes
            }
        }
    }

    func collection(_ id: ObjectID) throws -> AssetCollection? { try collections.collection(id) }
    func list(_ id: ObjectID) throws -> CollectionList? { try collections.list(id) }

    func hasHistory(of id: ObjectID) throws -> Bool {
        try history.firstSequence(of: ChangeRecord.topic(of: id), after: 0, through: .max) != nil
    }

    func assets(withOriginal digest: String, limit: Int) throws -> [ObjectID] {
        try assets.assets(withOriginal: digest, limit: limit)
    }

    func assets(withImage digest: [UInt8], limit: Int) throws -> [ObjectID] {
        try imageDigests.assets(with: digest, limit: limit)
    }

    func frames(ofBurst identifier: String, limit: Int) throws -> [ObjectID] {
        try assets.frames(ofBurst: identifier, limit: limit)
    }

    func members(of collection: ObjectID, limit: Int) throws -> [ObjectID] {
        try collections.members(of: collection, limit: limit)
    }

    func members(of collection: ObjectID, among ids: [ObjectID]) throws -> Set<ObjectID> {
        try collections.members(of: collection, among: ids)
    }

    func lastMemberKey(of collection: ObjectID) throws -> OrderKey? { try collections.lastMemberKey(of: collection) }
    func lastChildKey(of list: ObjectID) throws -> OrderKey? { try collections.lastChildKey(of: list) }

    func levels(below list: ObjectID, limit: Int) throws -> Int { try collections.levels(below: list, limit: limit) }

    func captureDates(of collection: ObjectID, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>? {
        try collections.captureDates(of: collection, excluding: excluded)
    }

    func member(after key: OrderKey?, in collection: ObjectID) throws -> (id: ObjectID, key: OrderKey)? {
        try collections.member(after: key, in: collection)
    }

    func child(after key: OrderKey?, in list: ObjectID) throws -> (id: ObjectID, key: OrderKey)? {
        try collections.child(after: key, in: list)
    }

    func captureDates(of moment: Moment, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>? {
        try collections.captureDates(of: moment, excluding: excluded)
    }

    func momentDates(in list: MomentList, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>? {
        try collections.momentDates(in: list, excluding: excluded)
    }

    func recentlyAdded(before date: Int64, limit: Int) throws -> [ObjectID] {
        try collections.recentlyAdded(before: date, limit: limit)
    }

    func trashed(before date: Int64, limit: Int) throws -> [ObjectID] {
        try collections.trashed(before: date, limit: limit)
    }

    func publishedEdit(_ id: String, of publisher: String) throws -> StoredEdit? { try edits.edit(id, of: publisher) }
    func pendingEdits() throws -> Int { try edits.pending() }

    /// Writes the result of a transaction, except for the counters. Collections are inserted before their members and
    /// deleted after them.
    func save(_ result: TransactionResult, sequence: Int64, _ counters: inout CounterChanges) throws {
        try collections.deleteMemberships(result.collections, result.lists)
        try collections.save(Self.parentsFirst(result.lists.filter { $0.after != nil }, \.after))
        try collections.save(result.collections.filter { $0.after != nil })
        try assets.save(result.assets, sequence: sequence, row: { known.assets[$0]??.row }, &counters)
        known.assets = [:]
        try collections.save(result.collections.filter { $0.after == nil })
        try collections.save(Self.parentsFirst(result.lists.filter { $0.after == nil }, \.before).reversed())
        try edits.save(result.editRows)
        try imageDigests.save(result.imageDigests)
    }

    /// Returns folder changes in an order in which each folder comes after its parent.
    private static func parentsFirst(
        _ changes: [EntityChange<CollectionList>],
        _ state: (EntityChange<CollectionList>) -> CollectionList?
    ) -> [EntityChange<CollectionList>] {
        var left = Dictionary(changes.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
        var ordered: [EntityChange<CollectionList>] = []
        for change in changes {
            var chain: [EntityChange<CollectionList>] = []
            var current: ObjectID? = change.id
            while let id = current, let found = left.removeValue(forKey: id) {
                chain.append(found)
                current = state(found)?.parent
            }
            ordered += chain.reversed()
        }
        return ordered
    }
}
