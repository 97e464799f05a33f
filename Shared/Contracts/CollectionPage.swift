public import JSONValue
public import PhotoModel

/// The result of `fetch.collections`.
public struct CollectionPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    /// The albums and other collections of the page.
    public var collections: [AssetCollection]
    /// For a folder's children: the folders of the page.
    public var lists: [CollectionList]
    /// For a folder's children: ids of the collections and folders of the page, in their common order.
    public var order: [ObjectID]

    public init(
        token: ChangeToken,
        count: Int,
        collections: [AssetCollection],
        lists: [CollectionList] = [],
        order: [ObjectID] = []
    ) {
        self.token = token
        self.sequence = token.sequence
        self.count = count
        self.collections = collections
        self.lists = lists
        self.order = order
    }

    public static let method = "fetch.collections"
    public static let request = FetchCollections.parameters(
        "A page of the collections of a fetch result.",
        of: .collections,
        "collections",
        members: AssetCollection.table.fields.map(\.name)
            + CollectionList.table.fields.map(\.name).filter { name in
                !AssetCollection.table.fields.contains { $0.name == name }
            }
    )

    public static let table = JSONTable(
        "CollectionPage",
        "A page of collections.",
        unknown: .ignored,
        blank: CollectionPage(token: .none, count: 0, collections: []),
        ofResult + [
            .required(
                "collections",
                \.collections,
                .list(of: .object(AssetCollection.self), limit: ObjectForm.maxIDs),
                "The collections; for a folder's children, the albums."
            ),
            .defaulted(
                "lists",
                \.lists,
                .list(of: .object(CollectionList.self), limit: ObjectForm.maxIDs),
                "For a folder's children: the folders.",
                default: []
            ),
            .defaulted(
                "order",
                \.order,
                .list(of: .id(), limit: ObjectForm.maxIDs),
                "For a folder's children: ids of albums and folders in their common order.",
                default: []
            ),
        ]
    )
}
