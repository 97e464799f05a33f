// Which entities belong to a fetch, and in which order: what the catalog lowers to SQL and the change broker decides
// here, from the same value. Limit and offset are not looked at.

extension Asset {
    /// Whether it is shown where bursts are folded up (spec D8).
    public var isVisibleInBurst: Bool {
        burstIdentifier == nil || representsBurst || burstSelectionTypes.contains(.userPick)
    }

    /// Its place in a stored collection.
    public func orderKey(in collection: ObjectID) -> OrderKey? {
        memberships.first { $0.collection == collection }?.key
    }
}

extension AssetCollection {
    /// Whether a list holds it: a folder as its parent, a list of moments by the moment's own day and place.
    public func isChild(of list: ObjectID) -> Bool {
        if parent == list { return true }
        guard type == .moment, case .moment(let moment) = DerivedCollection(id) else { return false }
        return moment.lists.contains { $0.id == list }
    }
}

extension Fetch {
    /// Whether an asset belongs to the fetch.
    ///
    /// What is in the trash belongs to those that ask for it, and to no other. False for fetches that an asset alone does
    /// not decide (``FetchKind/isDecidedByEntity``).
    public func includes(_ asset: Asset) -> Bool {
        guard case .assets(let source) = kind, (asset.trashedDate != nil) == inTrash else { return false }
        switch source {
        case .library: break
        case .ids(let list): guard list.contains(asset.id) else { return false }
        case .collection(let collection):
            guard asset.memberships.contains(where: { $0.collection == collection }) else { return false }
        case .smartAlbum(let album): guard album.contains(asset) else { return false }
        case .moment(let moment): guard asset.moment == moment else { return false }
        case .below, .transient: return false
        case .burst(let burst):
            guard let own = asset.burstIdentifier, own.utf8.elementsEqual(burst.utf8) else { return false }
        }
        if asset.isHidden, !includeHidden { return false }
        if !includeAllBurstAssets, !asset.isVisibleInBurst { return false }
        if sourceTypes.rawValue & asset.sourceType.number == 0 { return false }
        if let mediaType, asset.mediaType != mediaType { return false }
        return predicate?.evaluate(asset) ?? true
    }

    /// Whether a collection belongs to the fetch.
    public func includes(_ collection: AssetCollection) -> Bool {
        switch kind {
        case .collections(let type, let subtype):
            guard type == nil || type == collection.type, subtype == nil || subtype == collection.subtype else {
                return false
            }
        case .collectionIDs(let list): guard list.contains(collection.id) else { return false }
        case .children(let parent): guard collection.isChild(of: parent) else { return false }
        case .assets, .lists, .listIDs, .collectionsContaining, .listsContaining: return false
        }
        return predicate?.evaluate(collection) ?? true
    }

    /// Whether a list belongs to the fetch.
    public func includes(_ list: CollectionList) -> Bool {
        switch kind {
        case .lists(let type, let subtype):
            guard type == nil || type == list.type, subtype == nil || subtype == list.subtype else { return false }
        case .listIDs(let ids): guard ids.contains(list.id) else { return false }
        case .children(let parent): guard list.parent == parent else { return false }
        case .assets, .collections, .collectionIDs, .collectionsContaining, .listsContaining: return false
        }
        return predicate?.evaluate(list) ?? true
    }

    /// Whether a collection or list belongs to the fetch.
    public func includes(_ object: PhotoCollection) -> Bool {
        switch object {
        case .collection(let collection): includes(collection)
        case .list(let list): includes(list)
        }
    }

    /// Whether one asset of the fetch stands before another (spec D10, S-21).
    ///
    /// Without sort descriptors: the order of the argument for ids, the album's own order, the capture date in a moment,
    /// else the date added.
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

    /// Whether one collection or list of the fetch stands before another.
    ///
    /// Without sort descriptors: the order of the argument for ids, the folder's own order, for moments and their lists the
    /// first capture date, else the date of creation.
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

    /// By a value of their own, missing ones last, then by identifier.
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

/// An album or a folder: PhotoKit's `PHCollection` (spec S-04).
public enum PhotoCollection: Sendable, Hashable, PredicateSubject {
    case collection(AssetCollection)
    case list(CollectionList)

    public var id: ObjectID {
        switch self {
        case .collection(let collection): collection.id
        case .list(let list): list.id
        }
    }

    public var parentKey: OrderKey? {
        switch self {
        case .collection(let collection): collection.parentKey
        case .list(let list): list.parentKey
        }
    }

    public var creationDate: Int64 {
        switch self {
        case .collection(let collection): collection.creationDate
        case .list(let list): list.creationDate
        }
    }

    public var startDate: Int64? {
        switch self {
        case .collection(let collection): collection.startDate
        case .list(let list): list.startDate
        }
    }

    public var place: Location? { nil }
    public var words: [String] { [] }

    public func value(of key: PredicateKey) -> PredicateValue {
        switch self {
        case .collection(let collection): collection.value(of: key)
        case .list(let list): list.value(of: key)
        }
    }
}
