public import JSONValue
public import PhotoModel

/// The result of `fetch.lists`.
public struct ListPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    /// The folders or moment lists of the page.
    public var lists: [CollectionList]

    public init(token: ChangeToken, count: Int, lists: [CollectionList]) {
        self.token = token
        self.sequence = token.sequence
        self.count = count
        self.lists = lists
    }

    public static let method = "fetch.lists"
    public static let request = FetchLists.parameters(
        "A page of the folders or moment lists of a fetch result.",
        of: .lists,
        "lists",
        members: CollectionList.table.fields.map(\.name)
    )

    public static let table = JSONTable(
        "ListPage",
        "A page of lists.",
        unknown: .ignored,
        blank: ListPage(token: .none, count: 0, lists: []),
        ofResult + [
            .required("lists", \.lists, .list(of: .object(CollectionList.self), limit: ObjectForm.maxIDs), "Lists.")
        ]
    )
}
