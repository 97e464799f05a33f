import TestSupport
import PhotoModel
import Synchronization

@testable import Catalog

/// A library state in dictionaries, which the rules use like the database.
struct InMemoryLibrary: LibraryState {
    var snapshot: Snapshot

    init() {
        snapshot = Snapshot()
        var root = CollectionList(id: .root)
        root.subtype = .rootFolder
        snapshot.lists[.root] = root
    }

    func asset(_ id: ObjectID) -> Asset? { snapshot.assets[id] }
    /// Counts the assets that are read together.
    let prefetched = QueryCount()

    func prefetch(_ ids: [ObjectID]) { for _ in ids { prefetched.add() } }

    func collection(_ id: ObjectID) -> AssetCollection? { snapshot.collections[id] }
    func list(_ id: ObjectID) -> CollectionList? { snapshot.lists[id] }
    func hasHistory(of id: ObjectID) -> Bool { seen.contains(id) }

    func assets(withOriginal digest: String, limit: Int) -> [ObjectID] {
        let all = snapshot.assets.values.filter { asset in
            asset.resources.contains {
                $0.digest == digest && ($0.type.isOriginal || $0.type == .alternatePhoto && !$0.isRawOriginal)
            }
        }
        let shown = all.filter { $0.trashedDate == nil }.map(\.id).sorted()
        let trashed = all.filter { $0.trashedDate != nil }.map(\.id).sorted()
        return Array((shown + trashed).prefix(limit))
    }

    func assets(withImage digest: [UInt8], limit: Int) -> [ObjectID] { [] }

    func frames(ofBurst identifier: String, limit: Int) -> [ObjectID] {
        snapshot.assets.values.filter { $0.burstIdentifier == identifier }.map(\.id).sorted()
    }

    func members(of collection: ObjectID, limit: Int) -> [ObjectID] {
        let keyed = snapshot.assets.values.compactMap { asset in asset.orderKey(in: collection).map { ($0, asset.id) } }
        return Array(keyed.sorted { $0.0 < $1.0 }.map(\.1).prefix(limit))
    }

    func members(of collection: ObjectID, among ids: [ObjectID]) -> Set<ObjectID> {
        Set(ids.filter { asset($0)?.orderKey(in: collection) != nil })
    }

    func lastMemberKey(of collection: ObjectID) -> OrderKey? {
        snapshot.assets.values.compactMap { $0.orderKey(in: collection) }.max()
    }

    func lastChildKey(of list: ObjectID) -> OrderKey? { children(of: list).last?.key }

    func levels(below list: ObjectID, limit: Int) -> Int {
        guard limit > 0 else { return 0 }
        let below = snapshot.lists.values.filter { $0.parent == list }
        return below.map { 1 + levels(below: $0.id, limit: limit - 1) }.max() ?? 0
    }

    func captureDates(of collection: ObjectID, excluding excluded: Set<ObjectID>) -> ClosedRange<Int64>? {
        range(
            snapshot.assets.values.filter {
                $0.orderKey(in: collection) != nil && $0.trashedDate == nil && !excluded.contains($0.id)
            }.compactMap(\.creationDate)
        )
    }

    private func range(_ dates: [Int64]) -> ClosedRange<Int64>? {
        guard let first = dates.min(), let last = dates.max() else { return nil }
        return first...last
    }

    func member(after key: OrderKey?, in collection: ObjectID) -> (id: ObjectID, key: OrderKey)? {
        snapshot.assets.values.compactMap { asset in asset.orderKey(in: collection).map { (asset.id, $0) } }
            .filter { found in key.map { $0 < found.1 } ?? true }.min { $0.1 < $1.1 }
    }

    func children(of list: ObjectID) -> [(id: ObjectID, key: OrderKey)] {
        let albums = snapshot.collections.values.filter { $0.parent == list }.compactMap { child in
            child.parentKey.map { (child.id, $0) }
        }
        let folders = snapshot.lists.values.filter { $0.parent == list }.compactMap { child in
            child.parentKey.map { (child.id, $0) }
        }
        return (albums + folders).sorted { $0.1 < $1.1 }
    }

    /// Counts the queries for children of folders.
    let childQueries = QueryCount()

    func child(after key: OrderKey?, in list: ObjectID) -> (id: ObjectID, key: OrderKey)? {
        childQueries.add()
        return children(of: list).first { child in key.map { $0 < child.key } ?? true }
    }

    func captureDates(of moment: Moment, excluding excluded: Set<ObjectID>) -> ClosedRange<Int64>? {
        range(
            snapshot.assets.values.filter { $0.moment == moment && !excluded.contains($0.id) }
                .compactMap(\.creationDate)
        )
    }

    func momentDates(in list: MomentList, excluding excluded: Set<ObjectID>) -> ClosedRange<Int64>? {
        let moments = snapshot.collections.values.filter { $0.isChild(of: list.id) && !excluded.contains($0.id) }
        return range(moments.compactMap(\.startDate) + moments.compactMap(\.endDate))
    }

    func recentlyAdded(before date: Int64, limit: Int) -> [ObjectID] {
        let stale = snapshot.assets.values.filter { $0.isRecentlyAdded && $0.addedDate < date }
        return Array(stale.map(\.id).sorted().prefix(limit))
    }

    func trashed(before date: Int64, limit: Int) -> [ObjectID] {
        let old = snapshot.assets.values.filter { asset in asset.trashedDate.map { $0 < date } ?? false }
        return Array(old.map(\.id).sorted().prefix(limit))
    }

    func publishedEdit(_ id: String, of publisher: String) -> StoredEdit? { edits["\(publisher) \(id)"] }
    func pendingEdits() -> Int { edits.values.count { $0.state == .accepted } }

    // MARK: Transactions

    /// Published edits by publisher and id.
    private(set) var edits: [String: StoredEdit] = [:]

    /// The objects of all transactions.
    private var seen: Set<ObjectID> = []
    private(set) var sequence: Int64 = 0
    private var random = SeededRandom(seed: 11)

    /// Performs a transaction and applies its result.
    @discardableResult
    mutating func perform(
        _ changes: [PreparedChange],
        limit: Int = 1000,
        now: Int64? = nil,
        expiresAssets: Bool = false,
        for publisher: String? = nil
    ) throws -> (ChangeRecord, [String: ObjectID]) {
        var ids = random
        var transaction = ChangeTransaction(
            state: self,
            sequence: sequence + 1,
            now: now ?? (sequence + 1) * 1_000_000,
            limit: limit,
            publisher: publisher,
            makeID: { kind in ObjectID(kind, milliseconds: 1, using: &ids) }
        )
        try transaction.apply(changes)
        if expiresAssets { _ = try transaction.expireAssets(at: transaction.now, trashSpan: 30 * 86_400_000_000) }
        let result = try transaction.finish()
        random = ids
        var record = ChangeRecord(
            sequence: sequence + 1,
            library: "",
            date: 0,
            origin: ChangeOrigin(identity: "test")
        )
        record.assets = result.assets
        record.collections = result.collections
        record.lists = result.lists
        record.edits = result.edits
        for edit in result.editRows { edits["\(edit.publisher) \(edit.id)"] = edit }
        if !result.isEmpty {
            sequence += 1
            snapshot.apply(record)
            seen.formUnion(record.assets.map(\.id) + record.collections.map(\.id) + record.lists.map(\.id))
        }
        return (record, Dictionary(transaction.placeholders.map { ($0.ref, $0.id) }, uniquingKeysWith: { $1 }))
    }

    @discardableResult
    mutating func perform(_ requests: ChangeRequest..., limit: Int = 1000) throws -> ChangeRecord {
        try perform(requests.map { PreparedChange($0) }, limit: limit).0
    }

    /// Adds an asset with generated bytes.
    mutating func add(_ seed: Int, date: Int64? = nil, burst: String? = nil, set: AssetPatch = AssetPatch()) throws
        -> ObjectID
    {
        let (_, ids) = try perform([.create("p", seed, date: date, burst: burst, set: set)])
        guard let id = ids["p"] else { throw DamagedRow("no asset was created") }
        return id
    }

    mutating func addAlbum(_ title: String, _ members: [ObjectID] = []) throws -> ObjectID {
        let (_, ids) = try perform([
            PreparedChange(.createCollection(.init(ref: "c", title: title, add: members.map { .id($0) })))
        ])
        guard let id = ids["c"] else { throw DamagedRow("no album was created") }
        return id
    }
}

/// A number of queries, shared by the copies of a library.
final class QueryCount: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add() { count.add(1, ordering: .relaxed) }
}

extension PreparedChange {
    static func album(_ title: String, _ member: ObjectID) -> PreparedChange {
        PreparedChange(.createCollection(.init(title: title, add: [.id(member)])))
    }

    static func create(
        _ ref: String,
        _ seed: Int,
        date: Int64? = nil,
        burst: String? = nil,
        set: AssetPatch = AssetPatch(),
        ifDuplicate: DuplicateRule = .useExisting
    ) -> PreparedChange {
        var facts = ExtractedMetadata()
        facts.contentType = "public.jpeg"
        facts.pixelWidth = 400
        facts.pixelHeight = 300
        facts.creationDate = date
        facts.burstIdentifier = burst
        let request = ChangeRequest.CreateAsset(
            ref: ref,
            resources: [NewResource(source: .path("/p"))],
            set: set,
            ifDuplicate: ifDuplicate
        )
        return PreparedChange(.createAsset(request), resources: [.bytes(seed, .photo, facts)])
    }

    static func edit(
        _ id: ObjectID,
        _ format: String,
        _ seed: Int,
        if revision: Revision? = nil,
        token: EditInputToken? = nil
    ) -> PreparedChange {
        var facts = ExtractedMetadata()
        facts.contentType = "public.jpeg"
        facts.pixelWidth = 200
        facts.pixelHeight = 100
        let request = ChangeRequest.EditAsset(
            id: id,
            render: NewResource(source: .attachment(0)),
            adjustmentData: AdjustmentData(formatIdentifier: format, formatVersion: "1", attachment: 1),
            ifContentRevision: revision,
            inputToken: token
        )
        return PreparedChange(
            .editAsset(request),
            resources: [.bytes(seed, .fullSizePhoto, facts)],
            adjustment: .bytes(seed + 1_000_000, .adjustmentData, nil)
        )
    }
}

extension PreparedResource {
    static func bytes(_ seed: Int, _ type: ResourceType, _ facts: ExtractedMetadata?) -> PreparedResource {
        let digits = String(seed)
        let digest = String(repeating: "0", count: 64 - digits.count) + digits
        return PreparedResource(type: type, digest: digest, size: 10, originalFilename: "\(seed).jpg", facts: facts)
    }
}
