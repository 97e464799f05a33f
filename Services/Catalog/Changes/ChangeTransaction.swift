import Contracts
import PhotoModel

/// A transaction while its requests are applied in order; each request sees the effects of the earlier ones.
///
/// Nothing is written: ``finish()`` returns the entities before and after, including derived values.
struct ChangeTransaction<State: LibraryState> {
    let state: State
    let sequence: Int64
    /// The time of the transaction, in microseconds since 1970.
    let now: Int64
    /// The retention time, which is later than `now` while the clock is behind.
    let retentionTime: Int64
    let limit: Int
    let makeID: (ObjectKind) -> ObjectID
    /// The client that a service acts for, which owns the published edits of this transaction; nil otherwise.
    let publisher: String?

    private(set) var assets = ChangedEntities<Asset>()
    private(set) var collections = ChangedEntities<AssetCollection>()
    private(set) var lists = ChangedEntities<CollectionList>()
    /// The objects that placeholders refer to.
    private(set) var placeholders: [(ref: String, id: ObjectID)] = []
    private(set) var duplicates: [String] = []
    /// Assets that were in the trash and have the bytes of a new one.
    var restored: [ObjectID] = []
    /// Members of requests that an existing asset cannot be given.
    var ignored: [PerformChanges.Ignored] = []
    /// New assets whose image the library had; empty if the client may not learn about other assets.
    var sameImage: [PerformChanges.SameImage] = []
    /// True if the result names the other assets with the image of a new one: the client may learn about other assets.
    var reportsSameImage = true
    /// True if new files that a camera took as frames of a burst join it: the client may change the other frames.
    var joinsBursts = true
    /// The maximum bytes of the texts of the assets: that of a record, which is larger.
    var maxTextBytes = Int.max
    /// The bytes of the texts of the assets that were counted, and the number of assets up to the last of these.
    private var textBytes = 0
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
    /// By burst the frames that requests chose as its representative, the last one last.
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
    mutating func apply(_ changes: [PreparedChange]) throws {
        let named = changes.reduce(0) { $0 + $1.request.assets.count + $1.request.namedInEdits }
        // Named objects that do not change, such as objects to remove that are no members, are looked up too.
        guard named <= 100 * limit else {
            throw ChangeError.tooManyNames(limit: 100 * limit)
        }
        let read = changes.flatMap(\.request.readAssets)
        if read.count > 1 {
            for start in stride(from: 0, to: read.count, by: limit) {
                try state.prefetch(Array(read[start..<min(start + limit, read.count)]))
            }
        }
        for index in changes.indices {
            requestIndex = index
            do {
                try apply(changes[index])
            } catch let error as any RefusedRequest {
                throw CatalogErrorMapping.rpcError(error).about(request: index)
            }
        }
    }

    private mutating func apply(_ change: PreparedChange) throws {
        if let mayName {
            for id in change.request.assets where try !mayName(id) { throw notFound(id) }
        }
        switch change.request {
        case .createAsset(let request): try create(request, change)
        case .updateAsset(let request): try update(request)
        case .deleteAssets(let request): try deleteAssets(request)
        case .editAsset(let request):
            let pairedVideo = request.pairedVideo == nil ? nil : change.resources.last
            try edit(request, change.resources.first, pairedVideo: pairedVideo, change.adjustment)
        case .revertAsset(let request): try revert(request)
        case .createCollection(let request): try create(request)
        case .updateCollection(let request): try update(request, change.snapshot)
        case .trashAssets(let request): try trash(request)
        case .restoreAssets(let request): try restore(request)
        case .createList(let request): try create(request)
        case .updateList(let request): try update(request, change.snapshot)
        case .deleteLists(let request): try deleteLists(request)
        case .deleteCollections(let request): try deleteCollections(request)
        case .acceptEdit(let request): try accept(request)
        case .failEdit(let request): try fail(request)
        }
    }

    // MARK: Entities as they are now

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
    func require(_ wanted: Revision?, _ current: Revision, of id: ObjectID) throws {
        guard let wanted, wanted != current else { return }
        throw ChangeError.changed(id, current: current, expected: wanted)
    }

    // MARK: Touching

    mutating func set(_ asset: Asset) throws {
        try assets.set(asset.id, to: asset, from: state.asset)
        try checkLimit()
        if assets.count > countedAssets { try countTexts(of: assets.changes.last?.before == asset ? nil : asset) }
    }

    mutating func remove(asset id: ObjectID) throws {
        try assets.set(id, to: nil, from: state.asset)
        try checkLimit()
        if assets.count > countedAssets, let asset = assets.changes.last?.before { try countTexts(of: asset) }
    }

    /// Refuses a transaction as soon as the texts of its assets are larger than a record, so that not all of them are
    /// in memory. The first few are not counted.
    ///
    /// - Parameter asset: nil if it does not change, and is not in the record
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
    mutating func takeAssets() -> [ChangedEntities<Asset>.Change] { assets.take() }

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
    /// Identifiers are never used twice (S-01): one that the history knows is refused, and one that was generated long
    /// ago, because it may have been that of a deleted object that the history has forgotten.
    ///
    /// - Throws: ``ChangeError/identifierRefused(_:)`` if an object has or had it, or if it was not generated within a day
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

// MARK: - Changed entities

/// The entities that a transaction has set or removed, in their states before and now, which may be equal.
struct ChangedEntities<Entity> {
    typealias Change = (id: ObjectID, before: Entity?, current: Entity?)

    /// The states before and now, in the order in which the entities were first set or removed.
    private(set) var changes: [Change] = []
    private var positions: [ObjectID: Int] = [:]

    var count: Int { changes.count }

    /// The entities in the order in which they were first set or removed.
    var order: [ObjectID] { changes.map(\.id) }

    /// Removes all entities and returns their states.
    mutating func take() -> [Change] {
        defer { self = ChangedEntities() }
        return changes
    }

    /// Returns the current state of an entity; `nil` if it was neither set nor removed, `.some(nil)` if it was removed.
    func state(of id: ObjectID) -> Entity?? {
        guard let position = positions[id] else { return nil }
        return .some(changes[position].current)
    }

    /// Sets the current state of an entity.
    ///
    /// - Parameter original: returns the state before the transaction; called when the entity is first set or removed
    mutating func set(_ id: ObjectID, to entity: Entity?, from original: (ObjectID) throws -> Entity?) rethrows {
        if let position = positions[id] {
            changes[position].current = entity
        } else {
            changes.append((id, try original(id), entity))
            positions[id] = changes.count - 1
        }
    }
}
