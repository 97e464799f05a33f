public import JSONValue

/// The position of an asset in a stored collection.
public struct Membership: Sendable, Hashable, JSONTabled {
    /// The album.
    public var collection: ObjectID
    /// The sort key in the album.
    public var key: OrderKey

    public init(collection: ObjectID, key: OrderKey) {
        self.collection = collection
        self.key = key
    }

    public static let table = JSONTable(
        "Membership",
        "The position of an asset in a collection.",
        unknown: .ignored,
        blank: Membership(collection: .root, key: OrderKey.after(nil)),
        [
            .required("collection", \.collection, .id(.assetCollection), "The album."),
            .required("key", \.key, .orderKey, "The sort key of the member, compared by bytes."),
        ]
    )
}
