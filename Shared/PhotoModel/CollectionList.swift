public import JSONValue

/// A folder or another list of collections: `PHCollectionList` (S-06).
public struct CollectionList: Sendable, Hashable, JSONTabled {
    /// Stable for the life of the library.
    public var id: ObjectID
    /// Changes with any change of the list.
    public var revision: Revision
    /// Folder, smart folder or list of moments.
    public var type: ListType = .folder
    /// The subtype.
    public var subtype: ListSubtype = .regularFolder
    /// The name; nil if it has none.
    public var title: String?
    /// The folder that contains it; nil for the root and for lists of moments.
    public var parent: ObjectID?
    /// The position in that folder; nil for the root and for lists of moments.
    public var parentKey: OrderKey?
    /// The time at which it was created, in microseconds since 1970.
    public var creationDate: Int64 = 0
    /// The time of the last change of the list or its children, in microseconds since 1970.
    public var modificationDate: Int64 = 0
    /// The earliest capture date below a list of moments, in microseconds since 1970; nil for a folder.
    public var startDate: Int64?
    /// The latest capture date below a list of moments, as ``startDate``.
    public var endDate: Int64?
    /// The number of albums and folders directly in the list.
    public var childCount = 0

    /// False: lists contain collections and lists (S-04).
    public var canContainAssets: Bool { false }
    /// True.
    public var canContainCollections: Bool { true }

    public init(id: ObjectID, revision: Revision = Revision(0)) {
        self.id = id
        self.revision = revision
    }

    public static let table = JSONTable(
        "CollectionList",
        "A folder or another list of collections. Dates are microseconds since 1970, UTC.",
        unknown: .ignored,
        blank: CollectionList(id: .root),
        [
            .required("id", \.id, .id(.collectionList), "Stable for the life of the library."),
            .required("revision", \.revision, .revision, "Changes with any change."),
            .required("type", \.type, .name(ListType.self), "Folder, smart folder or list of moments."),
            .required("subtype", \.subtype, .name(ListSubtype.self), "The subtype."),
            .derived("canContainAssets", \.canContainAssets, .flag, "False."),
            .derived("canContainCollections", \.canContainCollections, .flag, "True: its members are collections."),
            .optional("title", \.title, .storedText(maxBytes: TextLimit.title), "Its name."),
            .optional("parent", \.parent, .id(.collectionList), "The folder that contains it."),
            .optional("parentKey", \.parentKey, .orderKey, "Its position in that folder."),
            .required("creationDate", \.creationDate, .date(), "When it was created."),
            .required("modificationDate", \.modificationDate, .date(), "Last change of it or its children."),
            .optional(
                "startDate",
                \.startDate,
                .date(),
                "Earliest capture date below a list of moments; folders have none."
            ),
            .optional("endDate", \.endDate, .date(), "Latest capture date below a list of moments; folders have none."),
            .required("childCount", \.childCount, .count(0...Int.max), "Albums and folders directly in it."),
        ]
    )
}
