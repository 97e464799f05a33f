public import JSONValue

/// The sources of assets that a fetch includes: PhotoKit's `includeAssetSourceTypes` (T-07).
public struct SourceTypes: NamedBits {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    public static let userLibrary = SourceTypes(rawValue: SourceType.typeUserLibrary.number)
    public static let cloudShared = SourceTypes(rawValue: SourceType.typeCloudShared.number)
    public static let iTunesSynced = SourceTypes(rawValue: SourceType.typeiTunesSynced.number)
    public static let all: SourceTypes = [.userLibrary, .cloudShared, .iTunesSynced]

    public static let names: [(name: String, bit: Int)] = SourceType.allCases.map { ($0.rawValue, $0.number) }
}

/// The class of entities that is fetched.
public enum FetchSubject: String, Sendable, CaseIterable {
    case assets, collections, lists
    /// Albums and folders directly in a folder, mixed.
    case children
}

/// A fetch in wire form. Each member has been checked, their combination has not: ``Fetch`` is the checked value.
public struct FetchDescription: Sendable, Hashable, JSONTabled {
    /// The class of entities.
    public var kind: FetchSubject
    /// Only these entities, in this order.
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
    /// A JSON tree, text, or `{"format", "arguments"}`.
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
    /// For assets: includes all frames of bursts. The default is true for fetches by ids and by burst.
    public var includeAllBurstAssets: Bool?
    /// For assets: the included sources. The default is the user's own for the library and smart albums, else all.
    public var sourceTypes: SourceTypes?
    /// For assets: selects the assets in the trash and no others.
    public var inTrash: Bool?

    public init(_ kind: FetchSubject) { self.kind = kind }

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
                .name(FetchSubject.self),
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
                "Every frame of a burst, not only its representative and the user's picks."
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
    /// - Parameter usual: the kind that the method fetches; nil if it accepts all
    public static func fetch(of usual: FetchSubject? = nil) -> JSONType {
        JSONType(
            schema: FetchDescription.table.schema,
            decode: { (json: JSON) throws(JSONProblem) in
                var fetch = try FetchDescription.table.decode(json)
                if json["kind"]?.isNull ?? true { fetch.kind = fetch.impliedKind(usual) }
                return fetch
            },
            encode: { $0.json }
        )
    }
}

extension FetchDescription {
    /// Returns the kind of a fetch that names none.
    fileprivate func impliedKind(_ usual: FetchSubject?) -> FetchSubject {
        // Only children of a folder are collections in something.
        if usual == .collections, container != nil { return .children }
        if let usual { return usual }
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
