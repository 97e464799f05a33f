public import JSONValue
public import PhotoModel

/// The changes of one object: `PHObjectChangeDetails` (S-66).
public struct ObjectDetails: Sendable, Hashable, JSONTabled {
    /// The object.
    public var id: ObjectID
    /// The entity at the earlier token; nil if it did not exist.
    public var before: JSON?
    /// The entity at the later token; nil if it was deleted.
    public var after: JSON?
    /// True if the pixels changed.
    public var assetContentChanged: Bool
    /// True if it was deleted from the library.
    public var objectWasDeleted: Bool

    public init(
        id: ObjectID,
        before: JSON? = nil,
        after: JSON? = nil,
        assetContentChanged: Bool = false,
        objectWasDeleted: Bool = false
    ) {
        self.id = id
        self.before = before
        self.after = after
        self.assetContentChanged = assetContentChanged
        self.objectWasDeleted = objectWasDeleted
    }

    public static let table = JSONTable(
        "ObjectDetails",
        "The changes of one object.",
        unknown: .ignored,
        blank: ObjectDetails(id: .none),
        [
            .required("id", \.id, .id(), "The object."),
            .optional("before", \.before, .any, "The entity before; absent if it did not exist."),
            .optional("after", \.after, .any, "The entity after; absent if it was deleted."),
            .required("assetContentChanged", \.assetContentChanged, .flag, "True if the pixels changed."),
            .required("objectWasDeleted", \.objectWasDeleted, .flag, "True if it was deleted from the library."),
        ]
    )
}
