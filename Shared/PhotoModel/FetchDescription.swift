public import JSONValue

/// A fetch in wire form. Each member has been checked, their combination has not: ``Fetch`` is the checked value.
public struct FetchDescription: Sendable, Hashable, JSONTabled {
    /// The class of entities that is fetched.
    public enum Kind: String, Sendable, CaseIterable {
        case assets, collections, lists
        /// Albums and folders directly in a folder, mixed.
        case children
    }

    /// The class of entities.
    public var kind: Kind
    /// Only these entities, in this order; nil for all.
    public var ids: [ObjectID]?
    /// For assets: the collection that contains them, or the list below which they are. For children: the folder.
    public var container: ObjectID?
    /// For collections: an asset that they contain. For lists: a collection or list that they contain.
    public var containing: ObjectID?
    /// For assets: all frames of this burst.
    public var burstIdentifier: String?
    /// For assets: only this media type.
    public var mediaType: MediaType?
    /// For collections and lists: the name of a type, or PhotoKit's number as text.
    public var collectionType: String?
    /// For collections and lists: the name of a subtype, or PhotoKit's number as text.
    public var collectionSubtype: String?
    /// A JSON tree, text, or `{"format", "arguments"}`; nil for all entities.
    public var predicate: JSON?
    /// The sort keys; ties are broken by the identifiers.
    public var sort: [SortDescription] = []
    /// The maximum number of results, 0 for all.
    public var limit = 0
    /// The number of results to skip.
    public var offset = 0
    /// For assets: includes hidden assets. The default is true for fetches by ids and for the smart album of hidden
    /// assets.
    public var includeHidden: Bool?
    /// For assets: includes all frames of bursts. The default is true for fetches by ids, by burst and of the trash,
    /// where no frame represents its burst.
    public var includeAllBurstAssets: Bool?
    /// For assets: the included sources. The default is the user's own for the library and smart albums, else all.
    public var sourceTypes: SourceTypes?
    /// For assets: selects the assets in the trash and no others.
    public var inTrash: Bool?

    public init(_ kind: Kind) { self.kind = kind }

    /// The maximum number of identifiers in one fetch.
    public static let maxIDs = 10_000

    public static let table = JSONTable(
        "Fetch",
        "A selection of entities and their order.",
        unknown: .refused,
        blank: FetchDescription(.assets),
        [
            .defaulted(
                "kind",
                \.kind,
                .name(Kind.self),
                "The class of entities. Absent: what the method or the other members imply, else assets.",
                default: .assets,
                isWritten: true
            ),
            .optional("ids", \.ids, .list(of: .id(), limit: maxIDs), "Only these, in this order."),
            .optional(
                "in",
                \.container,
                .id(.assetCollection, .collectionList),
                "For assets: the collection that contains them, or the list below which they are. For children: "
                    + "the folder; absent: the root."
            ),
            .optional(
                "containing",
                \.containing,
                .id(),
                "For collections: an asset that they contain. For lists: a collection or list that they contain."
            ),
            .optional(
                "burstIdentifier",
                \.burstIdentifier,
                .text(maxBytes: 128),
                "For assets: all frames of this burst."
            ),
            .optional("mediaType", \.mediaType, .nameOrNumber(MediaType.self), "For assets: only this type."),
            .optional(
                "type",
                \.collectionType,
                .nameOrNumber,
                "For collections: album, smartAlbum, moment. For lists: folder, smartFolder, momentList. Or PhotoKit's "
                    + "number."
            ),
            .optional(
                "subtype",
                \.collectionSubtype,
                .nameOrNumber,
                "For collections and lists: PhotoKit's name or number."
            ),
            .optional(
                "predicate",
                \.predicate,
                .predicate,
                "A condition: NSPredicate's text, {\"format\": text, \"arguments\": [values]}, or a tree."
            ),
            .defaulted(
                "sort",
                \.sort,
                .list(of: .object(SortDescription.self), limit: SortDescriptor.maxCount),
                "The order; ties are broken by the identifiers.",
                default: []
            ),
            .defaulted("limit", \.limit, .count(0...Int(Int32.max)), "Maximum count, 0 for all.", default: 0),
            .defaulted("offset", \.offset, .count(0...Int(Int32.max)), "Number of results to skip.", default: 0),
            .optional("includeHidden", \.includeHidden, .flag, "Include hidden assets. Default: only for ids."),
            .optional(
                "includeAllBurstAssets",
                \.includeAllBurstAssets,
                .flag,
                "Every frame of a burst, not only its representative and the user's picks. Default: only for ids, a "
                    + "burst and the trash."
            ),
            .optional(
                "sourceTypes",
                \.sourceTypes,
                .bits(SourceTypes.self),
                "Sources of assets. Default: the user's own for the library and smart albums, else all."
            ),
            .optional("inTrash", \.inTrash, .flag, "Only assets in the trash."),
        ]
    )
}

extension JSONType where Value == FetchDescription {
    /// Returns the type of a fetch whose `kind` may be absent.
    ///
    /// - Parameter defaultKind: the kind that the method fetches; nil if it accepts all
    public static func fetch(of defaultKind: FetchDescription.Kind? = nil) -> JSONType {
        JSONType(
            schema: FetchDescription.table.schema,
            decode: { (json: JSON) throws(JSONProblem) in
                var fetch = try FetchDescription.table.decode(json)
                if json["kind"]?.isNull ?? true { fetch.kind = fetch.impliedKind(defaultKind) }
                return fetch
            },
            encode: { $0.json }
        )
    }
}

extension FetchDescription {
    /// Returns the kind of a fetch that names none.
    fileprivate func impliedKind(_ defaultKind: Kind?) -> Kind {
        // Only the children of a folder are collections in a container.
        if defaultKind == .collections, container != nil { return .children }
        if let defaultKind { return defaultKind }
        if let first = ids?.first {
            return switch first.kind {
            case .asset: .assets
            case .assetCollection: .collections
            case .collectionList: .lists
            }
        }
        if let containing { return containing.kind == .asset ? .collections : .lists }
        if let collectionType {
            if CollectionType(rawValue: collectionType) != nil { return .collections }
            if ListType(rawValue: collectionType) != nil { return .lists }
        }
        return .assets
    }
}

// MARK: - Members

/// A sort descriptor in wire form, before its key is checked against a class.
public struct SortDescription: Sendable, Hashable, JSONTabled {
    /// The name or alias of a key of the class that is fetched.
    public var key: String
    /// True if the smallest value is first.
    public var ascending: Bool

    public init(key: String, ascending: Bool = true) {
        self.key = key
        self.ascending = ascending
    }

    public static let table = JSONTable(
        "SortDescriptor",
        "A key of a sort order. Entities without a value sort last.",
        unknown: .refused,
        blank: SortDescription(key: ""),
        [
            .required("key", \.key, .text(maxBytes: 100), "A key of the class that is fetched."),
            .defaulted("ascending", \.ascending, .flag, "Smallest first.", default: true, isWritten: true),
        ]
    )
}

/// The sources of assets that a fetch includes: PhotoKit's `includeAssetSourceTypes` (T-07).
public struct SourceTypes: NamedBits {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The user's own library.
    public static let userLibrary = SourceTypes(rawValue: SourceType.typeUserLibrary.number)
    /// Assets of albums that are shared in a cloud.
    public static let cloudShared = SourceTypes(rawValue: SourceType.typeCloudShared.number)
    /// Assets synced from a computer.
    public static let iTunesSynced = SourceTypes(rawValue: SourceType.typeiTunesSynced.number)
    /// All sources.
    public static let all: SourceTypes = [.userLibrary, .cloudShared, .iTunesSynced]

    public static let names: [(name: String, bit: Int)] = SourceType.allCases.map { ($0.rawValue, $0.number) }
}

// MARK: - From and to a checked fetch

extension Fetch {
    /// Checks a fetch description.
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
            sourceTypes: description.sourceTypes,
            inTrash: description.inTrash
        )
    }

    /// Decodes and checks a fetch. A malformed one is `invalid_options`.
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
        let hasType = description.collectionType != nil || description.collectionSubtype != nil
        let (hasIDs, hasContainer) = (description.ids != nil, description.container != nil)
        let (hasBurst, hasContaining) = (description.burstIdentifier != nil, description.containing != nil)
        // A type may be given with `containing`.
        let selectors = [hasIDs, hasContainer, hasBurst, hasContaining, hasType && !hasContaining]
        guard selectors.count(where: { $0 }) <= 1 else {
            throw PredicateError(.invalidOptions, "ids, in, burstIdentifier, containing and type cannot be combined")
        }
        switch description.kind {
        case .assets:
            guard !hasType, !hasContaining else { throw refusal("type and containing", .assets) }
            return .assets(try source(of: description))
        case .collections:
            guard !hasContainer, !hasBurst else { throw refusal("in and burstIdentifier", .collections) }
            return try collections(description)
        case .lists:
            guard !hasContainer, !hasBurst else { throw refusal("in and burstIdentifier", .lists) }
            return try lists(description)
        case .children:
            guard !hasIDs, !hasBurst, !hasContaining, !hasType else {
                throw refusal("ids, burstIdentifier, containing and type", .children)
            }
            let list = description.container ?? .root
            guard list.kind == .collectionList else {
                throw PredicateError(.invalidOptions, "\"in\" must be a folder; an album has no children")
            }
            return .children(of: list)
        }
    }

    private static func source(of description: FetchDescription) throws(PredicateError) -> FetchKind.AssetSource {
        if let ids = description.ids { return .ids(try checked(IDList(ids), .asset)) }
        if let burst = description.burstIdentifier.map(nfc) {
            guard burst.utf8.count <= TextLimit.burstIdentifier else {
                throw PredicateError(
                    .limitExceeded,
                    "burstIdentifier has at most \(TextLimit.burstIdentifier) bytes, also in Unicode normal form C"
                )
            }
            return .burst(burst)
        }
        guard let container = description.container else { return .library }
        return container.kind == .collectionList ? .below(container) : .collection(container)
    }

    private static func collections(_ description: FetchDescription) throws(PredicateError) -> FetchKind {
        if let ids = description.ids { return .collectionIDs(try checked(IDList(ids), .assetCollection)) }
        let type = try name(description.collectionType, "type", CollectionType.self)
        let subtype = try name(description.collectionSubtype, "subtype", CollectionSubtype.self)
        if let asset = description.containing {
            guard asset.kind == .asset, subtype == nil || subtype == .any else {
                throw PredicateError(
                    .invalidOptions,
                    "collections containing an asset: only the asset and a type may be given"
                )
            }
            return .collectionsContaining(asset, type: type)
        }
        return .collections(type: type, subtype: subtype == .any ? nil : subtype)
    }

    private static func lists(_ description: FetchDescription) throws(PredicateError) -> FetchKind {
        if let ids = description.ids { return .listIDs(try checked(IDList(ids), .collectionList)) }
        if let member = description.containing {
            guard member.kind != .asset, description.collectionType == nil, description.collectionSubtype == nil else {
                throw PredicateError(.invalidOptions, "lists containing: give one collection or list only")
            }
            return .listsContaining(member)
        }
        let subtype = try name(description.collectionSubtype, "subtype", ListSubtype.self)
        return .lists(
            type: try name(description.collectionType, "type", ListType.self),
            subtype: subtype == .any ? nil : subtype
        )
    }

    private static func refusal(_ names: String, _ kind: FetchDescription.Kind) -> PredicateError {
        PredicateError(.invalidOptions, "\(names) cannot be used in a fetch of \(kind.rawValue)")
    }

    private static func checked(_ ids: IDList, _ kind: ObjectKind) throws(PredicateError) -> IDList {
        guard let mismatched = ids.ids.first(where: { $0.kind != kind }) else { return ids }
        throw PredicateError(.invalidOptions, "\(mismatched) is not of kind \(kind.rawValue)")
    }

    private static func name<Value: NumberedName>(
        _ text: String?,
        _ member: String,
        _: Value.Type
    ) throws(PredicateError) -> Value? {
        guard let text else { return nil }
        guard let value = Value(rawValue: text) ?? Int(text).flatMap({ Value(number: $0) }) else {
            let known = Value.allCases.filter { $0.number != Int.max }.map { "\($0.rawValue) (\($0.number))" }
            throw PredicateError(
                .invalidOptions,
                "unknown \(member) \"\(text)\"; known are \(known.joined(separator: ", "))",
                allowed: Value.allCases.map(\.rawValue)
            )
        }
        return value
    }

    /// The wire form with all defaults.
    public var wireForm: FetchDescription {
        var result: FetchDescription
        switch kind {
        case .assets(let source):
            result = FetchDescription(.assets)
            switch source {
            case .library: break
            case .ids(let list): result.ids = list.ids
            case .collection(let id), .below(let id), .transient(let id): result.container = id
            case .smartAlbum(let album): result.container = album.id
            case .moment(let moment): result.container = moment.id
            case .burst(let burst): result.burstIdentifier = burst
            }
            result.includeHidden = includeHidden
            result.includeAllBurstAssets = includeAllBurstAssets
            result.sourceTypes = sourceTypes
            result.inTrash = inTrash ? true : nil
        case .collections(let type, let subtype):
            result = FetchDescription(.collections)
            result.collectionType = type?.rawValue
            result.collectionSubtype = subtype?.rawValue
        case .lists(let type, let subtype):
            result = FetchDescription(.lists)
            result.collectionType = type?.rawValue
            result.collectionSubtype = subtype?.rawValue
        case .collectionsContaining(let asset, let type):
            result = FetchDescription(.collections)
            result.containing = asset
            result.collectionType = type?.rawValue
        case .listsContaining(let member):
            result = FetchDescription(.lists)
            result.containing = member
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

    /// The wire form as JSON.
    public var json: JSON { wireForm.json }

    /// The canonical JSON of the fetch. Equal fetches have equal bytes; observation ids are hashes of them.
    public var canonical: [UInt8] { json.canonical.bytes }
}
