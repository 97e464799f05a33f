// Membership and order of fetches, evaluated in memory: by the change-broker and PhotoKit, and by the catalog for
// single assets, earlier states, cached results and some fetches of collections. Otherwise the catalog lowers the same
// values to SQL. Limit and offset are not considered here.

extension Asset {
    /// True if the asset is visible when bursts are collapsed (D8).
    public var isVisibleInBurst: Bool {
        burstIdentifier == nil || representsBurst || burstSelectionTypes.contains(.userPick)
    }

    /// Returns the order key of the asset in a stored collection.
    public func orderKey(in collection: ObjectID) -> OrderKey? {
        memberships.first { $0.collection == collection }?.key
    }
}

extension AssetCollection {
    /// Returns true if a list contains the collection: a folder as its parent, a moment list by the moment's day and
    /// place.
    public func isChild(of list: ObjectID) -> Bool {
        if parent == list { return true }
        guard type == .moment, case .moment(let moment) = DerivedCollection(id) else { return false }
        return moment.lists.contains { $0.id == list }
    }
}

extension Asset {
    /// The albums that contain the asset, the smart albums to which it belongs, and its moment (T-04).
    public var collections: Set<ObjectID> {
        var collections = Set(memberships.map(\.collection))
        for album in SmartAlbum.every where album.contains(self) { collections.insert(album.id) }
        if let moment { collections.insert(moment.id) }
        return collections
    }
}

extension PhotoCollection {
    /// The folder that contains it; for a moment its cluster and its year (T-05).
    public var lists: Set<ObjectID> {
        switch self {
        case .list(let list): return list.parent.map { [$0] } ?? []
        case .collection(let collection):
            var lists: Set<ObjectID> = collection.parent.map { [$0] } ?? []
            if case .moment(let moment) = DerivedCollection(collection.id) { lists.formUnion(moment.lists.map(\.id)) }
            return lists
        }
    }
}

extension Fetch {
    /// Returns true if an asset belongs to the fetch.
    ///
    /// Assets in the trash belong only to fetches with `inTrash`, and other assets only to fetches without it. Returns
    /// false for a fetch that needs a ``scope`` and has none, and for one of a transient collection.
    public func includes(_ asset: Asset) -> Bool {
        guard case .assets(let source) = kind, (asset.trashedDate != nil) == inTrash else { return false }
        if let granted, !granted.contains(asset.id) { return false }
        switch source {
        case .library: break
        case .ids(let list): guard list.contains(asset.id) else { return false }
        case .collection(let collection):
            guard asset.memberships.contains(where: { $0.collection == collection }) else { return false }
        case .smartAlbum(let album): guard album.contains(asset) else { return false }
        case .moment(let moment): guard asset.moment == moment else { return false }
        case .below(let list):
            if let list = MomentList(list) {
                guard asset.moment?.lists.contains(list) == true else { return false }
            } else {
                guard let scope, asset.memberships.contains(where: { scope.contains($0.collection) }) else {
                    return false
                }
            }
        case .transient: return false
        case .burst(let burst):
            guard let own = asset.burstIdentifier, own.utf8.elementsEqual(burst.utf8) else { return false }
        }
        if asset.isHidden, !includeHidden { return false }
        if !includeAllBurstAssets, !asset.isVisibleInBurst { return false }
        if sourceTypes.rawValue & asset.sourceType.number == 0 { return false }
        if let mediaType, asset.mediaType != mediaType { return false }
        return predicate?.evaluate(asset) ?? true
    }

    /// Returns true if a collection belongs to the fetch.
    public func includes(_ collection: AssetCollection) -> Bool {
        switch kind {
        case .collections(let type, let subtype):
            guard type == nil || type == collection.type, subtype == nil || subtype == collection.subtype else {
                return false
            }
        case .collectionIDs(let list): guard list.contains(collection.id) else { return false }
        case .children(let parent): guard collection.isChild(of: parent) else { return false }
        case .collectionsContaining(_, let type):
            guard type == nil || type == collection.type, scope?.contains(collection.id) == true else { return false }
        case .assets, .lists, .listIDs, .listsContaining: return false
        }
        return predicate?.evaluate(collection) ?? true
    }

    /// Returns true if a list belongs to the fetch.
    public func includes(_ list: CollectionList) -> Bool {
        switch kind {
        case .lists(let type, let subtype):
            guard type == nil || type == list.type, subtype == nil || subtype == list.subtype else { return false }
        case .listIDs(let ids): guard ids.contains(list.id) else { return false }
        case .children(let parent): guard list.parent == parent else { return false }
        case .listsContaining: guard scope?.contains(list.id) == true else { return false }
        case .assets, .collections, .collectionIDs, .collectionsContaining: return false
        }
        return predicate?.evaluate(list) ?? true
    }

    /// Returns true if a collection or list belongs to the fetch.
    public func includes(_ object: PhotoCollection) -> Bool {
        switch object {
        case .collection(let collection): includes(collection)
        case .list(let list): includes(list)
        }
    }

    /// Returns true if one asset precedes another in the order of the fetch (D10, S-21).
    ///
    /// The default order, without sort descriptors, is: by position for ids, by order key in an album, by capture date
    /// in a moment, otherwise by date added.
    public func areInIncreasingOrder(_ left: Asset, _ right: Asset) -> Bool {
        guard sort.isEmpty, case .assets(let source) = kind else { return sort.precedes(left, right) }
        switch source {
        case .ids(let list): return Self.precedes(list.position(of: left.id), list.position(of: right.id), left, right)
        case .collection(let collection):
            return Self.precedes(left.orderKey(in: collection), right.orderKey(in: collection), left, right)
        case .moment: return Self.precedes(left.creationDate, right.creationDate, left, right)
        case .library, .burst, .smartAlbum, .below, .transient:
            return Self.precedes(left.addedDate, right.addedDate, left, right)
        }
    }

    /// Returns true if one collection or list precedes another in the order of the fetch.
    ///
    /// The default order, without sort descriptors, is: by position for ids, by order key in a folder, by first capture
    /// date for moments and their lists, otherwise by creation date.
    public func areInIncreasingOrder(_ left: PhotoCollection, _ right: PhotoCollection) -> Bool {
        guard sort.isEmpty else { return sort.precedes(left, right) }
        switch kind {
        case .collectionIDs(let list), .listIDs(let list):
            return Self.precedes(list.position(of: left.id), list.position(of: right.id), left, right)
        case .children(let list) where MomentList(list) == nil:
            return Self.precedes(left.parentKey, right.parentKey, left, right)
        case .collections(.moment?, _), .lists(.momentList?, _), .children:
            return Self.precedes(left.startDate, right.startDate, left, right)
        case .assets, .collections, .collectionsContaining, .lists, .listsContaining:
            return Self.precedes(left.creationDate, right.creationDate, left, right)
        }
    }

    /// Compares two optional values, nil last, and breaks ties by identifier.
    private static func precedes<Value: Comparable>(
        _ first: Value?,
        _ second: Value?,
        _ left: some PredicateSubject,
        _ right: some PredicateSubject
    ) -> Bool {
        switch (first, second) {
        case (let first?, let second?) where first != second: first < second
        case (nil, _?): false
        case (_?, nil): true
        default: left.id < right.id
        }
    }
}
