/// The set of entities from which a fetch selects.
public enum FetchKind: Sendable, Hashable {
    /// The set of assets from which a fetch selects.
    public enum AssetSource: Sendable, Hashable {
        case library
        case ids(IDList)
        /// The members of an album (S-16).
        case collection(ObjectID)
        case smartAlbum(SmartAlbum)
        case moment(Moment)
        /// All assets in the albums or moments below a list, each once (P-19).
        case below(ObjectID)
        /// The members of a transient collection of a client (S-30).
        case transient(ObjectID)
        /// Every frame of a burst (S-17, D8).
        case burst(String)

        /// True for the assets of a moment, and for those of a list of moments.
        public var isOfMoments: Bool {
            switch self {
            case .moment: true
            case .below(let list): MomentList(list) != nil
            default: false
            }
        }
    }

    case assets(AssetSource)
    /// A nil type or subtype matches all.
    case collections(type: CollectionType?, subtype: CollectionSubtype?)
    case collectionIDs(IDList)
    /// The albums, moments and smart albums that contain an asset (T-04).
    case collectionsContaining(ObjectID, type: CollectionType?)
    case lists(type: ListType?, subtype: ListSubtype?)
    case listIDs(IDList)
    /// The folder that contains a collection or list; for a moment its cluster and its year (T-05).
    case listsContaining(ObjectID)
    /// Albums and folders directly in a folder, mixed; for a moment list its moments (S-18).
    case children(of: ObjectID)

    /// The class to which predicate and sort keys belong.
    public var entityClass: EntityClass {
        switch self {
        case .assets: .asset
        case .collections, .collectionIDs, .collectionsContaining: .assetCollection
        case .lists, .listIDs, .listsContaining: .collectionList
        case .children: .collection
        }
    }

    /// True if the properties of an entity alone decide whether it belongs.
    public var isDecidedByEntity: Bool {
        switch self {
        case .assets(.transient): false
        case .children(let list): !list.isTransient
        default: !needsScope
        }
    }

    /// True if the properties of an entity decide only together with a ``Fetch/scope`` whether it belongs: the
    /// collections below a folder, or those that contain an object.
    public var needsScope: Bool {
        switch self {
        case .assets(.below(let list)): MomentList(list) == nil
        case .collectionsContaining, .listsContaining: true
        default: false
        }
    }

    /// True if the change records between two sequences update a result of the fetch from one to the other, so that the
    /// fetch can be observed and has change details.
    public var isFollowable: Bool {
        // Only its client's catalog knows the members of a transient list.
        if case .assets(.below(let list)) = self, list.isTransient { return false }
        return isDecidedByEntity || needsScope
    }

    /// The stored object to which the fetch refers: the album, moment or folder in which it selects, or the object
    /// whose collections it selects. There is no result if the object is deleted. Nil for all other fetches.
    public var object: ObjectID? {
        switch self {
        case .assets(.collection(let id)), .assets(.below(let id)), .collectionsContaining(let id, _),
            .listsContaining(let id):
            id
        case .assets(.moment(let moment)): moment.id
        case .children(let list): list.isTransient ? nil : list
        default: nil
        }
    }

    /// The kind with the identifier of a derived collection replaced by the smart album or the moment.
    var resolved: FetchKind {
        guard case .assets(.collection(let id)) = self else { return self }
        if id.isTransient { return .assets(.transient(id)) }
        switch DerivedCollection(id) {
        case .smartAlbum(let album): return .assets(.smartAlbum(album))
        case .moment(let moment): return .assets(.moment(moment))
        case nil: return self
        }
    }
}
