/// Identifiers in the order in which they were given, each once.
public struct IDList: Sendable, Hashable {
    public let ids: [ObjectID]
    private let positions: [ObjectID: Int]

    /// A repeated identifier counts where it stands first.
    public init(_ ids: [ObjectID]) {
        var positions: [ObjectID: Int] = [:]
        var unique: [ObjectID] = []
        for id in ids where positions[id] == nil {
            positions[id] = unique.count
            unique.append(id)
        }
        self.ids = unique
        self.positions = positions
    }

    public func position(of id: ObjectID) -> Int? { positions[id] }

    public func contains(_ id: ObjectID) -> Bool { positions[id] != nil }

    public static func == (left: IDList, right: IDList) -> Bool { left.ids == right.ids }

    public func hash(into hasher: inout Hasher) { hasher.combine(ids) }
}

/// What a fetch takes its entities from.
public enum FetchKind: Sendable, Hashable {
    public enum AssetSource: Sendable, Hashable {
        case library
        case ids(IDList)
        /// The members of an album (spec S-16).
        case collection(ObjectID)
        case smartAlbum(SmartAlbum)
        case moment(Moment)
        /// Everything in the albums or moments below a list, each asset once (spec P-19).
        case below(ObjectID)
        /// The members of a collection that a client holds for a while (spec S-30).
        case transient(ObjectID)
        /// Every frame of a burst (spec S-17, D8).
        case burst(String)
    }

    case assets(AssetSource)
    /// Nil stands for every type, and for every subtype.
    case collections(type: CollectionType?, subtype: CollectionSubtype?)
    case collectionIDs(IDList)
    /// The albums, moments and smart albums that an asset is in (spec T-04).
    case collectionsContaining(ObjectID, type: CollectionType?)
    case lists(type: ListType?, subtype: ListSubtype?)
    case listIDs(IDList)
    /// The folder that a collection or list is in; of a moment its cluster and its year (spec T-05).
    case listsContaining(ObjectID)
    /// Albums and folders directly in a folder, mixed; of a list of moments its moments (spec S-18).
    case children(of: ObjectID)

    public var entityClass: PredicateClass {
        switch self {
        case .assets: .asset
        case .collections, .collectionIDs, .collectionsContaining: .assetCollection
        case .lists, .listIDs, .listsContaining: .collectionList
        case .children: .collection
        }
    }

    /// Whether an entity's own facts decide that it belongs: only such fetches can be carried along by records.
    public var isDecidedByEntity: Bool {
        switch self {
        case .assets(.below), .assets(.transient), .collectionsContaining, .listsContaining: false
        case .children(let list): !list.isTransient
        default: true
        }
    }

    /// What an identifier names, where it names something derived.
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

/// Which entities, in which order: a value that names a fetch (DESIGN 3.4).
///
/// Checked: predicate and sort keys belong to the class that is fetched. The options are the effective ones, so that
/// fetches that mean the same are equal and have equal ``canonical`` bytes.
public struct Fetch: Sendable, Hashable {
    public let kind: FetchKind
    public private(set) var predicate: Predicate?
    public let sort: [SortDescriptor]
    /// The most results, after filter, order and offset; 0 for all.
    public private(set) var limit: Int
    public private(set) var offset: Int
    /// Of assets: only this kind of medium.
    public let mediaType: MediaType?
    /// Of assets; see ``FetchDescription/includeHidden`` for the default.
    public let includeHidden: Bool
    public let includeAllBurstAssets: Bool
    public let sourceTypes: SourceTypes
    /// Of assets: what is in the trash instead of what is not.
    public let inTrash: Bool

    /// A fetch; options that are left out take the default of the kind (spec D7, D8, T-07).
    ///
    /// - Throws: `invalid_predicate` or `unsupported_sort_key` where predicate or sort are of another class,
    ///   `invalid_options` for an option that the kind does not have
    public init(
        _ kind: FetchKind,
        predicate: Predicate? = nil,
        sort: [SortDescriptor] = [],
        limit: Int = 0,
        offset: Int = 0,
        mediaType: MediaType? = nil,
        includeHidden: Bool? = nil,
        includeAllBurstAssets: Bool? = nil,
        sourceTypes: SourceTypes? = nil,
        inTrash: Bool? = nil
    ) throws(PredicateError) {
        let kind = kind.resolved
        let entityClass = kind.entityClass
        if let predicate, predicate.entityClass != entityClass {
            throw PredicateError(
                .invalidPredicate,
                "a predicate of \(predicate.entityClass.rawValue) in a fetch of \(entityClass.rawValue)",
                entityClass: entityClass
            )
        }
        var keys: [SortDescriptor] = []
        for descriptor in sort {
            let checked = try SortDescriptor(
                descriptor.key.name,
                ascending: descriptor.ascending,
                of: entityClass
            )
            if !keys.contains(where: { $0.key == checked.key }) { keys.append(checked) }
        }
        guard limit >= 0, offset >= 0 else {
            throw PredicateError(.invalidOptions, "limit and offset are 0 or more")
        }
        var (isNamed, isBurst, isLibrary, isHidden) = (false, false, false, false)
        switch kind {
        case .assets(.ids): isNamed = true
        case .assets(.burst): isBurst = true
        case .assets(.library): isLibrary = true
        // A smart album is the library under a condition; that of the hidden consists of them (spec D7).
        case .assets(.smartAlbum(let album)): (isLibrary, isHidden) = (true, album == .allHidden)
        case .assets: break
        default:
            guard mediaType == nil, includeHidden == nil, includeAllBurstAssets == nil, sourceTypes == nil,
                inTrash == nil
            else {
                throw PredicateError(
                    .invalidOptions,
                    "mediaType, includeHidden, includeAllBurstAssets, sourceTypes and inTrash are for fetches of assets"
                )
            }
        }
        self.kind = kind
        // A condition that everything passes is none.
        self.predicate = predicate?.root == .constant(true) ? nil : predicate
        self.sort = keys
        self.limit = limit
        self.offset = offset
        self.mediaType = mediaType
        self.includeHidden = includeHidden ?? (isNamed || isHidden)
        self.inTrash = inTrash ?? false
        self.includeAllBurstAssets = includeAllBurstAssets ?? (isNamed || isBurst)
        if let sourceTypes, !sourceTypes.isEmpty {
            self.sourceTypes = sourceTypes
        } else {
            self.sourceTypes = isLibrary ? .userLibrary : .all
        }
    }

    /// The same fetch with another window.
    public func window(offset: Int, limit: Int) -> Fetch {
        var fetch = self
        fetch.offset = max(0, offset)
        fetch.limit = max(0, limit)
        return fetch
    }
}
