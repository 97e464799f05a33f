/// A fetch: a selection of entities and their order.
///
/// The value has been checked: predicate and sort keys belong to the class that is fetched. Defaults of options are
/// filled in, so equivalent fetches are equal and have equal ``canonical`` bytes.
public struct Fetch: Sendable, Hashable {
    /// The set of entities from which the fetch selects.
    public let kind: FetchKind
    /// The condition on the entities; nil for all.
    public private(set) var predicate: Predicate?
    /// The sort keys, without repetitions; empty for the default order of the kind.
    public let sort: [SortDescriptor]
    /// The maximum number of results, after filter, order and offset; 0 for all.
    public private(set) var limit: Int
    /// The number of results to skip, after filter and order.
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
    /// itself, or the collections or lists that contain its object, all at the token of the result. Nil if they have
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

    /// Returns the same fetch with a scope.
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

    /// True if a result depends on more than the properties of its entities: on a ``scope``, or on the list of a
    /// limited grant.
    public var needsScope: Bool { kind.needsScope || granted != nil }

    /// True for a fetch in a limited view whose result consists of the moments of that view, or of assets in them.
    public var dependsOnViewMoments: Bool {
        guard granted != nil else { return false }
        return if case .assets(let source) = kind { source.isOfMoments } else { true }
    }

    /// True if the result depends on the files that are on the catalog's machine (`isLocal`). These are added and
    /// removed without change records, so such a result is valid only for the time at which it was computed.
    public var dependsOnLocalFiles: Bool { predicate?.root.mentions(.isLocal) ?? false }

    /// The reason why the changes of such a result are not known, for users.
    public static let localFilesReason =
        "isLocal is not part of the history: files are downloaded and released without change records; fetch or count "
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

    /// Returns the same fetch of assets, but selecting from a list of them, without a ``scope`` and a limited view.
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
