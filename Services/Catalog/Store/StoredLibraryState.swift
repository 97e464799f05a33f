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
    /// A cache of the assets read so far: rows are written only when the transaction ends, so they stay valid until
    /// then.
    private let cache = RowCache()

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
        if let stored = cache.assets[id] { return stored?.asset }
        let stored = try assets.stored(id)
        cache.assets[id] = .some(stored)
        return stored?.asset
    }

    /// The number of assets that are read together, and the bytes of their texts after which none are read ahead: one
    /// asset may have megabytes, and the transaction may be refused before it needs the asset.
    private static let prefetchLimits = (assets: 50, textBytes: 8 << 20)

    func prefetch(_ ids: [ObjectID]) throws {
        for start in stride(from: 0, to: ids.count, by: Self.prefetchLimits.assets) {
            guard cache.textBytes <= Self.prefetchLimits.textBytes else { return }
            let part = Array(ids[start..<min(start + Self.prefetchLimits.assets, ids.count)])
            for id in part where cache.assets[id] == nil { cache.assets[id] = .some(nil) }
            for stored in try assets.stored(part) {
                cache.assets[stored.asset.id] = .some(stored)
                cache.textBytes += stored.asset.textBytes
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
        try collections.clearLostOrderKeys(result.collections, result.lists)
        try collections.save(Self.parentsFirst(result.lists.filter { $0.after != nil }, \.after))
        try collections.save(result.collections.filter { $0.after != nil })
        try assets.save(result.assets, sequence: sequence, knownRow: { cache.assets[$0]??.row }, &counters)
        cache.assets = [:]
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
        var remaining = Dictionary(changes.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
        var ordered: [EntityChange<CollectionList>] = []
        for change in changes {
            var chain: [EntityChange<CollectionList>] = []
            var current: ObjectID? = change.id
            while let id = current, let found = remaining.removeValue(forKey: id) {
                chain.append(found)
                current = state(found)?.parent
            }
            ordered += chain.reversed()
        }
        return ordered
    }
}

// MARK: - Assets with their row numbers

/// An asset and the number of its row. It is a class, because an asset has many members to copy.
final class StoredAsset {
    let row: Int64
    fileprivate(set) var asset: Asset

    init(row: Int64, asset: Asset) {
        self.row = row
        self.asset = asset
    }
}

// Whole assets by identifier. Those of a page are read by `AssetReader`, by row number and with the requested members
// only.
extension AssetStore {
    private static let selectionByID = "SELECT \(AssetRowMapping.selection) FROM asset a WHERE a.id = ?"
    private static let selectionByIDs = """
        SELECT \(AssetRowMapping.selection) FROM json_each(?) e JOIN asset a ON a.id = e.value
        """

    /// Returns an asset by identifier; nil if there is none.
    func stored(_ id: ObjectID) throws -> StoredAsset? {
        var statement = try SQLStatement(Self.selectionByID, database)
        statement.bind(id.text)
        guard try statement.step() else { return nil }
        let row = statement.currentRow.int64(0)
        var asset = try AssetRowMapping.asset(statement.currentRow)
        let hasMetadata = AssetRowMapping.marks(statement.currentRow).contains(.hasMetadata)
        try addParts(.ofOne, bind: { $0.bind(row) }) { _, change in change(&asset) }
        if hasMetadata { asset.metadata = try MetadataStore(database: database).metadata(of: row) }
        return StoredAsset(row: row, asset: asset)
    }

    /// Returns assets by identifier, read together; identifiers without an asset are left out.
    func stored(_ ids: [ObjectID]) throws -> [StoredAsset] {
        var statement = try SQLStatement(Self.selectionByIDs, database)
        statement.bind(jsonList(ids))
        var assets: [StoredAsset] = []
        assets.reserveCapacity(ids.count)
        var positions: [Int64: Int] = [:]
        positions.reserveCapacity(ids.count)
        while try statement.step() {
            let row = statement.currentRow.int64(0)
            guard positions[row] == nil else { continue }
            positions[row] = assets.count
            var asset = try AssetRowMapping.asset(statement.currentRow)
            if AssetRowMapping.marks(statement.currentRow).contains(.hasMetadata) {
                asset.metadata = try MetadataStore(database: database).metadata(of: row)
            }
            assets.append(StoredAsset(row: row, asset: asset))
        }
        let add: (Int64, (inout Asset) -> Void) -> Void = { row, change in
            if let position = positions[row] { change(&assets[position].asset) }
        }
        let rows = assets.map(\.row).sorted()
        guard let first = rows.first, let last = rows.last else { return [] }
        if last - first < 2 * Int64(rows.count) {
            // Assets that were imported together have neighbouring rows: reading a few others is cheaper than looking
            // each of them up.
            let bind: (inout SQLStatement) -> Void = {
                $0.bind(first)
                $0.bind(last)
            }
            try addParts(.ofRange, bind: bind, to: add)
        } else {
            let list = jsonList(rows)
            try addParts(.ofMany, bind: { $0.bind(list) }, to: add)
        }
        return assets
    }

    /// The statements that read resources, keywords and memberships, which other tables hold.
    private struct PartStatements {
        let resources: String
        let keywords: String
        let memberships: String

        static let ofOne = PartStatements("= ?")
        static let ofRange = PartStatements("BETWEEN ? AND ?")
        static let ofMany = PartStatements("IN (SELECT atom FROM json_each(?))")

        init(_ among: String) {
            resources = """
                SELECT r.asset, \(AssetReader.resourceColumns)
                FROM resource r WHERE r.asset \(among) ORDER BY r.asset, r.position
                """
            keywords = "SELECT asset, text FROM keyword WHERE asset \(among) ORDER BY asset, position"
            memberships = """
                SELECT m.asset, \(AssetReader.membershipColumns)
                FROM membership m JOIN collection c ON c.row = m.collection
                WHERE m.asset \(among) ORDER BY m.asset, c.id
                """
        }
    }

    /// Reads resources, keywords and memberships and passes them on by row number.
    private func addParts(
        _ statements: PartStatements,
        bind: (inout SQLStatement) -> Void,
        to add: (_ row: Int64, (inout Asset) -> Void) -> Void
    ) throws {
        var resources = try SQLStatement(statements.resources, database)
        bind(&resources)
        while try resources.step() {
            let resource = try AssetReader.resource(resources.currentRow)
            add(resources.currentRow.int64(0)) { $0.resources.append(resource) }
        }
        var keywords = try SQLStatement(statements.keywords, database)
        bind(&keywords)
        while try keywords.step() {
            let keyword = keywords.currentRow.text(1)
            add(keywords.currentRow.int64(0)) { $0.keywords.append(keyword) }
        }
        var memberships = try SQLStatement(statements.memberships, database)
        bind(&memberships)
        while try memberships.step() {
            let membership = try AssetReader.membership(memberships.currentRow)
            add(memberships.currentRow.int64(0)) { $0.memberships.append(membership) }
        }
    }
}
