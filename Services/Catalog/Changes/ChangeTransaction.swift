import Contracts
import PhotoModel

/// A transaction while its requests are applied in order; each request sees the effects of the earlier ones.
///
/// It writes no rows: ``finish()`` returns the entities before and after, including derived values, and
/// ``GroupCommit`` writes them.
struct ChangeTransaction<State: LibraryState> {
    let state: State
    let sequence: Int64
    /// The time of the transaction, in microseconds since 1970.
    let now: Int64
    /// The retention time, which is later than `now` while the wall clock is behind.
    let retentionTime: Int64
    /// The maximum number of entities that the transaction may touch.
    let limit: Int
    let makeID: (ObjectKind) -> ObjectID
    /// The client that a service acts for, which owns the published edits of this transaction; nil otherwise.
    let publisher: String?

    private(set) var assets = TouchedEntities<Asset>()
    private(set) var collections = TouchedEntities<AssetCollection>()
    private(set) var lists = TouchedEntities<CollectionList>()
    /// The objects that placeholders refer to.
    private(set) var placeholders: [(ref: String, id: ObjectID)] = []
    private(set) var duplicates: [String] = []
    /// Assets that were in the trash and have the bytes of a new one.
    var restored: [ObjectID] = []
    /// Members of requests that had no effect because the asset existed.
    var ignored: [PerformChanges.Ignored] = []
    /// New assets whose image the library had; empty if the client may not learn about other assets.
    var sameImage: [PerformChanges.SameImage] = []
    /// True if the client may learn about other assets: the result then names those with the image of a new one.
    var reportsSameImage = true
    /// True if the client may change other frames of a burst: new frames that a camera took then join their burst.
    var joinsBursts = true
    /// The maximum size of the assets' texts in bytes: that of a record, which contains them.
    var maxTextBytes = Int.max
    /// The size of the texts that were counted, in bytes.
    private var textBytes = 0
    /// The number of touched assets at the last count; the first eight are not counted.
    private var countedAssets = 8
    /// The digests of the image data of files that were read.
    var imageDigests: [ImageDigest] = []
    /// The index of the request that is applied.
    private(set) var requestIndex = 0
    /// Published edits whose state changed, and their rows by id.
    private(set) var edits: [PublishedEdit] = []
    private(set) var editRows: [String: StoredEdit] = [:]
    /// Assets with new pixels.
    var contentChanged: Set<ObjectID> = []
    /// Originals that this transaction added, by digest.
    var newOriginals: [String: ObjectID] = [:]
    /// The last order key that this transaction assigned in each album.
    var lastKeys: [ObjectID: OrderKey] = [:]
    /// Bursts of which frames were added, hidden, shown or removed.
    var bursts: Set<String> = []
    /// The frames that requests chose as representatives, by burst, in the order of the requests.
    var chosenRepresentatives: [String: [ObjectID]] = [:]
    /// Returns true if a request may name a stored asset; nil if it may name all.
    var mayName: ((ObjectID) throws -> Bool)?
    /// Microseconds for which an asset counts as recently added; 0 if none ever does.
    let recentSpan: Int64

    init(
        state: State,
        sequence: Int64,
        now: Int64,
        retentionTime: Int64? = nil,
        limit: Int = ChangeRecord.maxEntities,
        recentSpan: Int64 = 30 * 86_400_000_000,
        publisher: String? = nil,
        makeID: @escaping (ObjectKind) -> ObjectID
    ) {
        self.state = state
        self.sequence = sequence
        self.now = now
        self.retentionTime = retentionTime ?? now
        self.limit = limit
        self.recentSpan = recentSpan
        self.makeID = makeID
        self.publisher = publisher
    }

    /// Applies all requests in order.
    ///
    /// - Throws: an error with the index of the request that failed
    mutating func apply(_ prepared: [PreparedChange]) throws {
        let named = prepared.reduce(0) { $0 + $1.request.namedAssets.count + $1.request.editMemberCount }
        // Named objects that do not change, such as objects to remove that are no members, are looked up too.
        guard named <= 100 * limit else {
            throw ChangeError.tooManyNames(limit: 100 * limit)
        }
        let read = prepared.flatMap(\.request.assetsToRead)
        if read.count > 1 {
            for start in stride(from: 0, to: read.count, by: limit) {
                try state.prefetch(Array(read[start..<min(start + limit, read.count)]))
            }
        }
        for index in prepared.indices {
            requestIndex = index
            do {
                try apply(prepared[index])
            } catch let error as any RefusedRequest {
                throw CatalogErrorMapping.rpcError(error).about(request: index)
            }
        }
    }

    private mutating func apply(_ prepared: PreparedChange) throws {
        if let mayName {
            for id in prepared.request.namedAssets where try !mayName(id) { throw notFound(id) }
        }
        switch prepared.request {
        case .createAsset(let request): try create(request, prepared)
        case .updateAsset(let request): try update(request)
        case .deleteAssets(let request): try deleteAssets(request)
        case .editAsset(let request):
            let pairedVideo = request.pairedVideo == nil ? nil : prepared.resources.last
            try edit(request, prepared.resources.first, pairedVideo: pairedVideo, prepared.adjustment)
        case .revertAsset(let request): try revert(request)
        case .createCollection(let request): try create(request)
        case .updateCollection(let request): try update(request, prepared.snapshot)
        case .trashAssets(let request): try trash(request)
        case .restoreAssets(let request): try restore(request)
        case .createList(let request): try create(request)
        case .updateList(let request): try update(request, prepared.snapshot)
        case .deleteLists(let request): try deleteLists(request)
        case .deleteCollections(let request): try deleteCollections(request)
        case .acceptEdit(let request): try accept(request)
        case .failEdit(let request): try fail(request)
        }
    }

    // MARK: Current entities

    func asset(_ id: ObjectID) throws -> Asset? {
        if let touched = assets.state(of: id) { return touched }
        return try state.asset(id)
    }

    func collection(_ id: ObjectID) throws -> AssetCollection? {
        if let touched = collections.state(of: id) { return touched }
        return try state.collection(id)
    }

    func list(_ id: ObjectID) throws -> CollectionList? {
        if let touched = lists.state(of: id) { return touched }
        return try state.list(id)
    }

    func existingList(_ id: ObjectID) throws -> CollectionList {
        try requireStored(id)
        guard id.kind == .collectionList else { throw ChangeError.wrongKind(id, expected: .collectionList) }
        guard let list = try list(id) else { throw notFound(id) }
        return list
    }

    func existingAsset(_ id: ObjectID) throws -> Asset {
        guard id.kind == .asset else { throw ChangeError.wrongKind(id, expected: .asset) }
        guard let asset = try asset(id) else { throw notFound(id) }
        return asset
    }

    func existingCollection(_ id: ObjectID) throws -> AssetCollection {
        try requireStored(id)
        guard id.kind == .assetCollection else { throw ChangeError.wrongKind(id, expected: .assetCollection) }
        guard let collection = try collection(id) else { throw notFound(id) }
        return collection
    }

    /// - Throws: `change_not_supported` for a transient collection or list (S-30)
    private func requireStored(_ id: ObjectID) throws {
        guard id.isTransient else { return }
        throw ChangeError.transient(id)
    }

    private func notFound(_ id: ObjectID) -> CatalogError {
        .objectNotFound(id)
    }

    func id(_ reference: ObjectReference) throws -> ObjectID {
        switch reference {
        case .id(let id): return id
        case .placeholder(let ref):
            guard let id = placeholders.first(where: { $0.ref == ref })?.id else {
                throw ChangeError.unknownReference(ref)
            }
            return id
        }
    }

    /// Checks a precondition; `current` is the revision that the entity had before the transaction.
    ///
    /// - Throws: `conflict` if they differ
    func require(_ expected: Revision?, _ current: Revision, of id: ObjectID) throws {
        guard let expected, expected != current else { return }
        throw ChangeError.changed(id, current: current, expected: expected)
    }

    // MARK: Touching

    mutating func set(_ asset: Asset) throws {
        try assets.set(asset.id, to: asset, from: state.asset)
        try checkLimit()
        if assets.count > countedAssets { try countTexts(of: assets.entries.last?.before == asset ? nil : asset) }
    }

    mutating func remove(asset id: ObjectID) throws {
        try assets.set(id, to: nil, from: state.asset)
        try checkLimit()
        if assets.count > countedAssets, let asset = assets.entries.last?.before { try countTexts(of: asset) }
    }

    /// Throws as soon as the texts of the assets are larger than a record may be, so that not all of them are read into
    /// memory.
    ///
    /// - Parameter asset: nil if it does not change and so is not in the record
    private mutating func countTexts(of asset: Asset?) throws {
        countedAssets = assets.count
        textBytes += asset?.textBytes ?? 0
        guard textBytes <= maxTextBytes else {
            throw CatalogError.recordTooLarge(bytes: textBytes, limit: maxTextBytes)
        }
    }

    mutating func set(_ collection: AssetCollection) throws {
        try setDerived(collection.id, collection)
        try checkLimit()
    }

    mutating func remove(collection id: ObjectID) throws {
        try setDerived(id, nil as AssetCollection?)
        try checkLimit()
    }

    mutating func set(_ list: CollectionList) throws {
        try setDerived(list.id, list)
        try checkLimit()
    }

    mutating func remove(list id: ObjectID) throws {
        try setDerived(id, nil as CollectionList?)
        try checkLimit()
    }

    /// Sets an entity that is derived from other changes, without checking the limit.
    mutating func setDerived(_ id: ObjectID, _ collection: AssetCollection?) throws {
        try collections.set(id, to: collection, from: state.collection)
    }

    mutating func setDerived(_ id: ObjectID, _ list: CollectionList?) throws {
        try lists.set(id, to: list, from: state.list)
    }

    mutating func changeChildren(of id: ObjectID, by step: Int) throws {
        var list = try existingList(id)
        list.childCount += step
        try set(list)
    }

    mutating func bind(_ ref: String?, to id: ObjectID, isDuplicate: Bool = false) throws {
        guard let ref else { return }
        guard !placeholders.contains(where: { $0.ref == ref }) else {
            throw ChangeError.duplicateReference(ref)
        }
        placeholders.append((ref, id))
        if isDuplicate { duplicates.append(ref) }
    }

    /// Removes the assets that were set or removed, and returns their states.
    mutating func takeAssets() -> [TouchedEntities<Asset>.Entry] { assets.take() }

    mutating func set(_ edit: StoredEdit) {
        editRows[edit.id] = edit
        edits.append(edit.published)
    }

    /// Adds the state of an edit to the record without storing the edit.
    mutating func record(_ edit: PublishedEdit) { edits.append(edit) }

    private func checkLimit() throws {
        guard assets.count + collections.count + lists.count > limit else { return }
        throw ChangeError.tooManyObjects(limit: limit)
    }
}

// MARK: - Identifiers

extension ChangeTransaction {
    /// Returns the identifier of a new object: the one that the client generated, or a new one.
    ///
    /// No identifier is used twice (S-01): one that is in the history is refused, and so is one that was generated long
    /// ago, because it may be that of a deleted object that is no longer in the history.
    ///
    /// - Throws: ``ChangeError/identifierRefused(_:)`` if an object has or had it, or if it was not generated within a
    ///   day
    func newID(_ kind: ObjectKind, _ chosen: ObjectID?) throws -> ObjectID {
        guard let chosen else { return makeID(kind) }
        guard chosen.kind == kind else { throw ChangeError.wrongKind(chosen, expected: kind) }
        let isUsed: Bool =
            switch kind {
            case .asset: try asset(chosen) != nil
            case .assetCollection: try collection(chosen) != nil
            case .collectionList: try list(chosen) != nil
            }
        let day: Int64 = 86_400_000
        let age = now / 1000 - chosen.milliseconds
        guard try !isUsed && !state.hasHistory(of: chosen), (-day...day).contains(age) else {
            throw ChangeError.identifierRefused(chosen)
        }
        return chosen
    }
}

// MARK: - Touched entities

/// The entities that a transaction has set or removed, in their states before and now, which may be equal.
struct TouchedEntities<Entity> {
    typealias Entry = (id: ObjectID, before: Entity?, current: Entity?)

    /// The states before and now, in the order in which the entities were first set or removed.
    private(set) var entries: [Entry] = []
    private var positions: [ObjectID: Int] = [:]

    var count: Int { entries.count }

    /// The identifiers in the order in which the entities were first set or removed.
    var order: [ObjectID] { entries.map(\.id) }

    /// Removes all entities and returns their states.
    mutating func take() -> [Entry] {
        defer { self = TouchedEntities() }
        return entries
    }

    /// Returns the current state of an entity; `nil` if it was neither set nor removed, `.some(nil)` if it was removed.
    func state(of id: ObjectID) -> Entity?? {
        guard let position = positions[id] else { return nil }
        return .some(entries[position].current)
    }

    /// Sets the current state of an entity.
    ///
    /// - Parameter original: returns the state before the transaction; called when the entity is first set or removed
    mutating func set(_ id: ObjectID, to entity: Entity?, from original: (ObjectID) throws -> Entity?) rethrows {
        if let position = positions[id] {
            entries[position].current = entity
        } else {
            entries.append((id, try original(id), entity))
            positions[id] = entries.count - 1
        }
    }
}

// MARK: - State of the library

/// The library before a transaction, as far as the rules of the transaction read it.
///
/// The service implements it with the database, tests with dictionaries.
protocol LibraryState {
    func asset(_ id: ObjectID) throws -> Asset?
    /// Reads assets that will be needed, all at once; identifiers without an asset are ignored.
    func prefetch(_ ids: [ObjectID]) throws
    func collection(_ id: ObjectID) throws -> AssetCollection?
    func list(_ id: ObjectID) throws -> CollectionList?
    /// Returns true if the history has a change of an object, which may have been deleted since.
    func hasHistory(of id: ObjectID) throws -> Bool
    /// Returns at most `limit` assets whose original has these bytes: first those that are not in the trash, then
    /// the others, each in the order of import.
    func assets(withOriginal digest: String, limit: Int) throws -> [ObjectID]
    /// Returns at most `limit` assets whose file has the same image data, except those in the trash, oldest import
    /// first.
    func assets(withImage digest: [UInt8], limit: Int) throws -> [ObjectID]
    /// Returns at most `limit` frames of a burst, ordered by identifier.
    func frames(ofBurst identifier: String, limit: Int) throws -> [ObjectID]
    /// Returns at most `limit` members of an album in album order.
    func members(of collection: ObjectID, limit: Int) throws -> [ObjectID]
    /// Returns the given objects that are members of an album.
    func members(of collection: ObjectID, among ids: [ObjectID]) throws -> Set<ObjectID>
    func lastMemberKey(of collection: ObjectID) throws -> OrderKey?
    func lastChildKey(of list: ObjectID) throws -> OrderKey?
    /// Returns the number of levels of folders below a folder, counted up to `limit`; 0 without any.
    func levels(below list: ObjectID, limit: Int) throws -> Int
    /// Returns the earliest and latest capture date of the members that are not in the trash and not in `excluded`.
    func captureDates(of collection: ObjectID, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?

    /// Returns the member that follows an order key in an album, or the first member if the key is nil.
    func member(after key: OrderKey?, in collection: ObjectID) throws -> (id: ObjectID, key: OrderKey)?
    /// Returns the album or folder that follows an order key in a folder, or the first one if the key is nil.
    func child(after key: OrderKey?, in list: ObjectID) throws -> (id: ObjectID, key: OrderKey)?

    /// Returns the earliest and latest capture date of a moment's assets that are not in `excluded`.
    func captureDates(of moment: Moment, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?
    /// Returns the earliest start date and the latest end date of a list's moments that are not in `excluded`.
    func momentDates(in list: MomentList, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?
    /// Returns at most `limit` assets that count as recently added and were added before a date.
    func recentlyAdded(before date: Int64, limit: Int) throws -> [ObjectID]
    /// Returns at most `limit` assets that were moved to the trash before a date.
    func trashed(before date: Int64, limit: Int) throws -> [ObjectID]
    /// Returns a published edit by its publisher's id for it; nil if it is unknown.
    func publishedEdit(_ id: String, of publisher: String) throws -> StoredEdit?
    /// Returns the number of published edits that are accepted and not finished.
    func pendingEdits() throws -> Int
}

extension LibraryState {
    /// Does nothing.
    func prefetch(_ ids: [ObjectID]) throws {}
}
