public import JSONValue

/// An album, a smart album or a moment: `PHAssetCollection` (S-05). It does not contain its members.
public struct AssetCollection: Sendable, Hashable, JSONTabled {
    /// Stable for the life of the library.
    public var id: ObjectID
    /// Changes with any change of the collection.
    public var revision: Revision
    /// Album, smart album or moment.
    public var type: CollectionType = .album
    /// The subtype.
    public var subtype: CollectionSubtype = .albumRegular
    /// The name; nil if it has none.
    public var title: String?
    /// The folder that contains it; nil for a derived collection.
    public var parent: ObjectID?
    /// The position in that folder; nil for a derived collection.
    public var parentKey: OrderKey?
    /// The time at which it was created, in microseconds since 1970.
    public var creationDate: Int64 = 0
    /// The time of the last change of the collection or its members, in microseconds since 1970.
    public var modificationDate: Int64 = 0
    /// The earliest capture date of the members, hidden ones included, in microseconds since 1970; nil if there is
    /// none, and for a smart album.
    public var startDate: Int64?
    /// The latest capture date of the members, as ``startDate``.
    public var endDate: Int64?
    /// The number of members, hidden ones included; nil is PhotoKit's `NSNotFound` (S-39).
    public var estimatedAssetCount: Int?
    /// The cover image that the user chose; nil if there is none.
    public var keyAsset: ObjectID?
    /// The centre of the grid cell, for a moment with a location; nil for other collections.
    public var approximateLocation: Location?
    /// The names of that place, from the narrowest to the widest; empty for other collections.
    public var localizedLocationNames: [String] = []

    /// True: collections contain assets, lists contain collections (S-04).
    public var canContainAssets: Bool { true }
    /// False.
    public var canContainCollections: Bool { false }

    public init(id: ObjectID, revision: Revision = Revision(0)) {
        self.id = id
        self.revision = revision
    }

    public static let table = JSONTable(
        "AssetCollection",
        "An album, smart album or moment. Dates are microseconds since 1970, UTC.",
        unknown: .ignored,
        blank: AssetCollection(id: .none),
        [
            .required("id", \.id, .id(.assetCollection), "Stable for the life of the library."),
            .required("revision", \.revision, .revision, "Changes with any change."),
            .required("type", \.type, .name(CollectionType.self), "Album, smart album or moment."),
            .required("subtype", \.subtype, .name(CollectionSubtype.self), "The subtype."),
            .derived("canContainAssets", \.canContainAssets, .flag, "True: its members are assets."),
            .derived("canContainCollections", \.canContainCollections, .flag, "False."),
            .optional("title", \.title, .storedText(maxBytes: TextLimit.title), "Its name."),
            .optional("parent", \.parent, .id(.collectionList), "The folder that contains it."),
            .optional("parentKey", \.parentKey, .orderKey, "Its position in that folder."),
            .required("creationDate", \.creationDate, .date(), "When it was created."),
            .required("modificationDate", \.modificationDate, .date(), "Last change of it or its members."),
            .optional(
                "startDate",
                \.startDate,
                .date(),
                "Earliest capture date among the members; smart albums have none."
            ),
            .optional("endDate", \.endDate, .date(), "Latest capture date among the members; smart albums have none."),
            .optional("estimatedAssetCount", \.estimatedAssetCount, .count(0...Int.max), "Number of members."),
            .optional("keyAsset", \.keyAsset, .id(.asset), "The cover."),
            .optional("approximateLocation", \.approximateLocation, .object(Location.self), "Approximate location."),
            .defaulted(
                "localizedLocationNames",
                \.localizedLocationNames,
                .list(of: .text(maxBytes: 256), limit: 8),
                "The largest place near a moment and its country, if known.",
                default: []
            ),
        ]
    )
}
