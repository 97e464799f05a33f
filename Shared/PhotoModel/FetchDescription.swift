public import JSONValue

/// Where the assets of a fetch may come from: PhotoKit's `includeAssetSourceTypes` (spec T-07).
public struct SourceTypes: NamedBits {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    public static let userLibrary = SourceTypes(rawValue: SourceType.typeUserLibrary.number)
    public static let cloudShared = SourceTypes(rawValue: SourceType.typeCloudShared.number)
    public static let iTunesSynced = SourceTypes(rawValue: SourceType.typeiTunesSynced.number)
    public static let all: SourceTypes = [.userLibrary, .cloudShared, .iTunesSynced]

    public static let names: [(name: String, bit: Int)] = SourceType.allCases.map { ($0.rawValue, $0.number) }
}

/// What a fetch is about.
public enum FetchSubject: String, Sendable, CaseIterable {
    case assets, collections, lists
    /// Albums and folders directly in a folder, mixed.
    case children
}

/// A fetch as it stands on the wire: well formed, but not yet checked as a whole.
///
/// ``Fetch`` is the checked value.
public struct FetchDescription: Sendable, Hashable, JSONTabled {
    public var kind: FetchSubject
    /// Just these entities, in this order.
    public var ids: [ObjectID]?
    /// Of assets: the collection they are members of.
    ///
    /// Or the list below which they are. Of children: the folder.
    public var container: ObjectID?
    /// Of collections: an asset that they hold. Of lists: a collection or list that they hold.
    public var containing: ObjectID?
    public var burstIdentifier: String?
    public var mediaType: MediaType?
    public var collectionType: String?
    public var collectionSubtype: String?
    /// The JSON tree, text, or `{"format", "arguments"}`.
    public var predicate: JSON?
    public var sort: [SortDescription] = []
    public var limit = 0
    public var offset = 0
    public var includeHidden: Bool?
    public var includeAllBurstAssets: Bool?
    public var sourceTypes: SourceTypes?
    /// Of assets: what is in the trash instead.
    public var inTrash: Bool?

    public init(_ kind: FetchSubject) { self.kind = kind }

    /// The most identifiers one fetch may name.
    public static let maxIDs = 10_000

    public static let table = JSONTable(
        "Fetch",
        "Which entities, in which order.",
        unknown: .refused,
        blank: FetchDescription(.assets),
        [
            .defaulted(
                "kind",
                \.kind,
                .name(FetchSubject.self),
                "What is fetched.",
                default: .assets,
                isWritten: true
            ),
            .optional("ids", \.ids, .list(of: .id(), limit: maxIDs), "Just these, in this order."),
            .optional(
                "in",
                \.container,
                .id(.assetCollection, .collectionList),
                "Of assets: the collection they are in, or the list below which they are. Of children: the folder, "
                    + "the root where it is left out."
            ),
            .optional(
                "containing",
                \.containing,
                .id(),
                "Of collections: an asset that they hold. Of lists: a collection or list that they hold."
            ),
            .optional(
                "burstIdentifier",
                \.burstIdentifier,
                .text(maxBytes: 128),
                "Of assets: all frames of this burst."
            ),
            .optional("mediaType", \.mediaType, .name(MediaType.self), "Of assets: only these."),
            .optional(
                "type",
                \.collectionType,
                .text(maxBytes: 64),
                "Of collections: album, smartAlbum, moment. Of lists: folder, smartFolder, momentList."
            ),
            .optional("subtype", \.collectionSubtype, .text(maxBytes: 64), "Of collections and lists: only these."),
            .optional(
                "predicate",
                \.predicate,
                .any,
                "A condition: NSPredicate's text, {\"format\": text, \"arguments\": [values]}, or a tree."
            ),
            .defaulted(
                "sort",
                \.sort,
                .list(of: .object(SortDescription.self), limit: SortDescriptor.maxCount),
                "The order; ties stand in the order of the identifiers.",
                default: []
            ),
            .defaulted("limit", \.limit, .count(0...Int(Int32.max)), "The most results, 0 for all.", default: 0),
            .defaulted("offset", \.offset, .count(0...Int(Int32.max)), "Results left out at the front.", default: 0),
            .optional("includeHidden", \.includeHidden, .flag, "Hidden assets too. Fetches by ids do; others do not."),
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
                "Where assets come from. For the whole library and smart albums the user's own, else all."
            ),
            .optional("inTrash", \.inTrash, .flag, "What is in the trash instead of what is not."),
        ]
    )
}
