public import JSONValue

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
        /// The members of a collection (spec S-16).
        case collection(ObjectID)
        /// Every frame of a burst (spec S-17, D8).
        case burst(String)
    }

    case assets(AssetSource)
    /// Nil stands for every type, and for every subtype.
    case collections(type: CollectionType?, subtype: CollectionSubtype?)
    case collectionIDs(IDList)
    case lists(type: ListType?, subtype: ListSubtype?)
    case listIDs(IDList)
    /// Albums and folders directly in a folder, mixed (spec S-18).
    case children(of: ObjectID)

    public var entityClass: PredicateClass {
        switch self {
        case .assets: .asset
        case .collections, .collectionIDs: .assetCollection
        case .lists, .listIDs: .collectionList
        case .children: .collection
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
        sourceTypes: SourceTypes? = nil
    ) throws(PredicateError) {
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
        var (isNamed, isBurst, isLibrary) = (false, false, false)
        switch kind {
        case .assets(.ids): isNamed = true
        case .assets(.burst): isBurst = true
        case .assets(.library): isLibrary = true
        case .assets(.collection): break
        default:
            guard mediaType == nil, includeHidden == nil, includeAllBurstAssets == nil, sourceTypes == nil else {
                throw PredicateError(
                    .invalidOptions,
                    "mediaType, includeHidden, includeAllBurstAssets and sourceTypes are for fetches of assets"
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
        self.includeHidden = includeHidden ?? isNamed
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

    /// The same fetch of what passes another condition besides, as smart albums are made.
    ///
    /// - Throws: `limit_exceeded`; `invalid_predicate` for a predicate of another class
    public func filtered(by condition: Predicate) throws(PredicateError) -> Fetch {
        guard condition.entityClass == kind.entityClass else {
            throw PredicateError(
                .invalidPredicate,
                "a predicate of \(condition.entityClass.rawValue) in a fetch of \(kind.entityClass.rawValue)",
                entityClass: kind.entityClass
            )
        }
        var fetch = self
        if let predicate { fetch.predicate = try predicate.and(condition) } else { fetch.predicate = condition }
        return fetch
    }
}

// MARK: - On the wire

extension Fetch {
    /// Checks a fetch as it came in.
    ///
    /// - Throws: `unsupported_predicate`, `invalid_predicate`, `unsupported_sort_key`, `invalid_options`,
    ///   `limit_exceeded`
    public init(_ description: FetchDescription) throws(PredicateError) {
        let kind = try Self.kind(of: description)
        var sort: [SortDescriptor] = []
        for key in description.sort {
            sort.append(try SortDescriptor(key.key, ascending: key.ascending, of: kind.entityClass))
        }
        var predicate: Predicate?
        if let json = description.predicate { predicate = try Predicate(anyForm: json, of: kind.entityClass) }
        try self.init(
            kind,
            predicate: predicate,
            sort: sort,
            limit: description.limit,
            offset: description.offset,
            mediaType: description.mediaType,
            includeHidden: description.includeHidden,
            includeAllBurstAssets: description.includeAllBurstAssets,
            sourceTypes: description.sourceTypes
        )
    }

    /// Reads and checks a fetch; a malformed one is `invalid_options`.
    public init(json: JSON) throws(PredicateError) {
        let description: FetchDescription
        do throws(JSONProblem) {
            description = try FetchDescription(json: json)
        } catch {
            throw PredicateError(.invalidOptions, error.description)
        }
        try self.init(description)
    }

    private static func kind(of description: FetchDescription) throws(PredicateError) -> FetchKind {
        let scope = [
            description.ids != nil, description.container != nil, description.burstIdentifier != nil,
            description.collectionType != nil || description.collectionSubtype != nil,
        ]
        guard scope.count(where: { $0 }) <= 1 else {
            throw PredicateError(.invalidOptions, "ids, in, burstIdentifier and type exclude each other")
        }
        let ids = description.ids.map(IDList.init)
        switch description.kind {
        case .assets:
            guard !scope[3] else { throw refused("type", .assets) }
            if let ids { return .assets(.ids(try checked(ids, .asset))) }
            if let burst = description.burstIdentifier { return .assets(.burst(nfc(burst))) }
            guard let container = description.container else { return .assets(.library) }
            guard container.kind == .assetCollection else {
                throw PredicateError(.invalidOptions, "\"in\" must be a collection; a folder holds no assets")
            }
            return .assets(.collection(container))
        case .collections:
            guard !scope[1], !scope[2] else { throw refused("in and burstIdentifier", .collections) }
            if let ids { return .collectionIDs(try checked(ids, .assetCollection)) }
            let subtype = try name(description.collectionSubtype, "subtype", CollectionSubtype.self)
            return .collections(
                type: try name(description.collectionType, "type", CollectionType.self),
                subtype: subtype == .any ? nil : subtype
            )
        case .lists:
            guard !scope[1], !scope[2] else { throw refused("in and burstIdentifier", .lists) }
            if let ids { return .listIDs(try checked(ids, .collectionList)) }
            let subtype = try name(description.collectionSubtype, "subtype", ListSubtype.self)
            return .lists(
                type: try name(description.collectionType, "type", ListType.self),
                subtype: subtype == .any ? nil : subtype
            )
        case .children:
            guard !scope[0], !scope[2], !scope[3] else { throw refused("ids, burstIdentifier and type", .children) }
            let list = description.container ?? .root
            guard list.kind == .collectionList else {
                throw PredicateError(.invalidOptions, "\"in\" must be a folder; an album has no children")
            }
            return .children(of: list)
        }
    }

    private static func refused(_ names: String, _ kind: FetchSubject) -> PredicateError {
        PredicateError(.invalidOptions, "\(names) not for a fetch of \(kind.rawValue)")
    }

    private static func checked(_ ids: IDList, _ kind: ObjectKind) throws(PredicateError) -> IDList {
        guard let stranger = ids.ids.first(where: { $0.kind != kind }) else { return ids }
        throw PredicateError(.invalidOptions, "\(stranger) is no \(kind.rawValue)")
    }

    private static func name<Value: NumberedName>(
        _ text: String?,
        _ member: String,
        _: Value.Type
    ) throws(PredicateError) -> Value? {
        guard let text else { return nil }
        guard let value = Value(rawValue: text) else {
            throw PredicateError(
                .invalidOptions,
                "no \(member) \"\(text)\" here",
                allowed: Value.allCases.map(\.rawValue)
            )
        }
        return value
    }

    /// The wire form with every effective option written out.
    public var wireForm: FetchDescription {
        var result: FetchDescription
        switch kind {
        case .assets(let source):
            result = FetchDescription(.assets)
            switch source {
            case .library: break
            case .ids(let list): result.ids = list.ids
            case .collection(let id): result.container = id
            case .burst(let burst): result.burstIdentifier = burst
            }
            result.includeHidden = includeHidden
            result.includeAllBurstAssets = includeAllBurstAssets
            result.sourceTypes = sourceTypes
        case .collections(let type, let subtype):
            result = FetchDescription(.collections)
            result.collectionType = type?.rawValue
            result.collectionSubtype = subtype?.rawValue
        case .lists(let type, let subtype):
            result = FetchDescription(.lists)
            result.collectionType = type?.rawValue
            result.collectionSubtype = subtype?.rawValue
        case .collectionIDs(let list):
            result = FetchDescription(.collections)
            result.ids = list.ids
        case .listIDs(let list):
            result = FetchDescription(.lists)
            result.ids = list.ids
        case .children(let list):
            result = FetchDescription(.children)
            result.container = list
        }
        result.mediaType = mediaType
        result.predicate = predicate?.json
        result.sort = sort.map { SortDescription(key: $0.key.name, ascending: $0.ascending) }
        result.limit = limit
        result.offset = offset
        return result
    }

    public var json: JSON { wireForm.json }

    /// The one text of this fetch: equal fetches have equal bytes, which is what is hashed to name an observation.
    public var canonical: [UInt8] { json.canonical.bytes }
}
