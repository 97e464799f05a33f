/// A fetch: a selection of entities and their order.
///
/// The value has been checked: predicate and sort keys belong to the class that is fetched. Defaults of options are
/// filled in, so equivalent fetches are equal and have equal ``canonical`` bytes.
public struct Fetch: Sendable, Hashable {
    /// The set of entities from which the fetch selects.
    public let kind: FetchKind
    public private(set) var predicate: Predicate?
    /// The sort keys, without repetitions; empty for the default order of the kind.
    public let sort: [SortDescriptor]
    /// The maximum number of results, after filter, order and offset; 0 for all.
    public private(set) var limit: Int
    public private(set) var offset: Int
    /// Assets only: the media type.
    public let mediaType: MediaType?
    /// Assets only: see ``FetchDescription/includeHidden`` for the default.
    public let includeHidden: Bool
    /// Assets only: includes all frames of bursts, not only representatives and the user's picks.
    public let includeAllBurstAssets: Bool
    /// Assets only: the included sources.
    public let sourceTypes: SourceTypes
    /// Assets only: selects the assets in the trash and no others.
    public let inTrash: Bool
    /// For a fetch that needs one (``FetchKind/needsScope``): the folders and albums below its folder and the folder
    /// itself, or the collections or lists that contain its object, all at the moment of the result. Nil if they have
    /// not been read. It is not part of the wire form.
    public private(set) var scope: Set<ObjectID>?
    /// For the view of an identity with a limited grant: its list, to which the result is restricted. It is not part of
    /// the wire form.
    public private(set) var granted: GrantedAssets?

    /// Creates a fetch. Options that are nil have the default of the kind (D7, D8, T-07).
    ///
    /// - Throws: `invalid_predicate` or `unsupported_sort_key` if the predicate or a sort key is of another class,
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
            throw PredicateError(.invalidOptions, "limit and offset must be 0 or more")
        }
        var (isNamed, isBurst, isLibrary, isHidden) = (false, false, false, false)
        switch kind {
        case .assets(.ids): isNamed = true
        case .assets(.burst): isBurst = true
        case .assets(.library): isLibrary = true
        // A smart album is a condition on the library. The smart album of hidden assets includes hidden assets (D7).
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
        // A predicate that is always true is dropped.
        self.predicate = predicate?.root == .constant(true) ? nil : predicate
        self.sort = keys
        self.limit = limit
        self.offset = offset
        self.mediaType = mediaType
        self.includeHidden = includeHidden ?? (isNamed || isHidden)
        self.inTrash = inTrash ?? false
        self.includeAllBurstAssets = includeAllBurstAssets ?? (isNamed || isBurst || self.inTrash)
        if let sourceTypes, !sourceTypes.isEmpty {
            self.sourceTypes = sourceTypes
        } else {
            self.sourceTypes = isLibrary ? .userLibrary : .all
        }
    }

    /// Returns the same fetch with the scope of a moment.
    public func scoped(by scope: Set<ObjectID>?) -> Fetch {
        var fetch = self
        fetch.scope = scope
        return fetch
    }

    /// Returns the same fetch in the view of an identity with a limited grant.
    public func limited(to granted: GrantedAssets) -> Fetch {
        var fetch = self
        fetch.granted = granted
        return fetch
    }

    /// True if a result depends on more than the properties of its entities: on a ``scope``, or on the list of a limited
    /// grant.
    public var needsScope: Bool { kind.needsScope || granted != nil }

    /// True for a fetch in a limited view whose result consists of the moments of that view, or selects in one.
    public var dependsOnViewMoments: Bool {
        guard granted != nil else { return false }
        return if case .assets(let place) = kind { place.isOfMoments } else { true }
    }

    /// True if the result depends on the files that are on the catalog's machine (`isLocal`). These are added and
    /// removed without change records, so such a result is valid only for the time at which it was made.
    public var dependsOnLocalFiles: Bool { predicate?.root.mentions(.isLocal) ?? false }

    /// The reason that the changes of such a result are not known, for users.
    public static let localFilesReason =
        "isLocal is not part of the history: files are downloaded and given up without change records; fetch or count "
        + "again to see which are local now"

    /// Returns the same fetch with another list of its limited grant, or else with another scope.
    ///
    /// - Parameter sequence: the sequence of the transaction that changed it
    public func with(_ scope: Set<ObjectID>?, at sequence: Int64) -> Fetch {
        guard let granted else { return scoped(by: scope) }
        let (identity, key) = (granted.identity, granted.key)
        return limited(to: GrantedAssets(identity: identity, key: key, version: sequence, ids: scope ?? []))
    }

    /// The same fetch without its scope, and without the assets of its list: the part that stays the same while they
    /// change.
    public var unscoped: Fetch { with(nil, at: 0) }

    /// The same fetch without offset and limit.
    public var whole: Fetch { with(offset: 0, limit: 0) }

    /// Returns the same fetch with another offset and limit.
    public func with(offset: Int, limit: Int) -> Fetch {
        var fetch = self
        fetch.offset = max(0, offset)
        fetch.limit = max(0, limit)
        return fetch
    }

    /// Returns the same fetch of assets, selecting from a list of them. It is without a ``scope`` and a limited view.
    ///
    /// - Parameter sort: the sort keys; nil for those of this fetch
    /// - Throws: `invalid_predicate` or `unsupported_sort_key` if this is not a fetch of assets
    public func selecting(
        from assets: IDList,
        sort: [SortDescriptor]? = nil
    ) throws(PredicateError) -> Fetch {
        try Fetch(
            .assets(.ids(assets)),
            predicate: predicate,
            sort: sort ?? self.sort,
            limit: limit,
            offset: offset,
            mediaType: mediaType,
            includeHidden: includeHidden,
            includeAllBurstAssets: includeAllBurstAssets,
            sourceTypes: sourceTypes,
            inTrash: inTrash
        )
    }
}

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

    /// The stored object to which the fetch refers: the album, moment or folder in which it selects, or the object whose
    /// collections it selects. There is no result if the object is deleted. Nil for all other fetches.
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
