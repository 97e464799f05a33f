public import JSONValue
public import PhotoModel

/// A request for a page of a fetch result; the page type determines which entities are fetched.
public struct FetchPage<Page: ResultPage>: Request, FormedRequest {
    public typealias Result = Page
    public static var method: String { Page.method }
    public static var table: JSONTable<Self> { Page.request }
    /// The most objects of a page that has more than their identifiers.
    public static var maxPage: Int { 1000 }

    public var fetch: FetchDescription
    /// The token of the result; nil for the newest state.
    public var token: ChangeToken?
    /// Index of the first object of the page.
    public var from: Int
    public var count: Int
    public var atLeast: ChangeToken?
    /// The form of the objects of the page.
    public var form = ObjectForm()

    public init(
        fetch: FetchDescription,
        token: ChangeToken? = nil,
        from: Int = 0,
        count: Int = 100,
        atLeast: ChangeToken? = nil
    ) {
        self.fetch = fetch
        self.token = token
        self.from = from
        self.count = count
        self.atLeast = atLeast
    }

    /// Returns the table of the request.
    ///
    /// - Parameters:
    ///   - kind: the entities that are fetched if the request has no fetch
    ///   - what: their name in descriptions
    ///   - members: the names of their members
    static func parameters(
        _ summary: String,
        of kind: FetchSubject,
        _ what: String,
        members: [String]
    ) -> JSONTable<Self> {
        parameters(
            summary,
            blank: Self(fetch: FetchDescription(kind)),
            [
                .fetch(\.fetch, "The \(what) to fetch and their order.", of: kind, usual: kind),
                .optional("token", \.token, .token, "Token of the result, from its first page; absent: the newest."),
                .defaulted(
                    "from",
                    \.from,
                    .count(0...Int.max),
                    "Index of the first object of the page.",
                    default: 0
                ),
                .defaulted(
                    "count",
                    \.count,
                    .count(0...ObjectForm.maxIDs),
                    "Maximum objects of the page: \(maxPage), or \(ObjectForm.maxIDs) identifiers.",
                    default: 100
                ),
                .atLeast(\.atLeast),
            ] + JSONField.form(members)
        )
    }

    public init(params: JSON) throws(RPCError) {
        self = try Self.read(params)
        guard count <= Self.maxPage || form.isIDsOnly else {
            throw ErrorCode.invalidParams.error(
                "\(Self.method): count: a page has at most \(Self.maxPage) objects, or with members [\"id\"] "
                    + "\(ObjectForm.maxIDs); read further pages with from and the token of the first",
                ["parameter": "count", "limit": JSON(form.isIDsOnly ? ObjectForm.maxIDs : Self.maxPage)]
            )
        }
    }
}

/// `fetch.assets`: a page of assets (S-14 to S-29).
public typealias FetchAssets = FetchPage<AssetPage>

/// `fetch.collections`: a page of albums, smart albums and moments, or of a folder's children (S-18, S-19).
public typealias FetchCollections = FetchPage<CollectionPage>

/// `fetch.lists`: a page of folders and moment lists (S-06, S-07, T-05).
public typealias FetchLists = FetchPage<ListPage>

/// A page of objects of a result.
public protocol ResultPage: JSONTabled {
    /// The method name of the request for it.
    static var method: String { get }
    static var request: JSONTable<FetchPage<Self>> { get }

    /// The token of the result.
    var token: ChangeToken { get set }
    var sequence: Int64 { get set }
    /// Number of objects in the whole result, after offset and limit.
    var count: Int { get set }
}

extension ResultPage {
    /// The fields that every page has about its result.
    static var ofResult: [JSONField<Self>] {
        [
            .required("token", \.token, .token, "Token of the result."),
            .sequence(\.sequence),
            .required("count", \.count, .count(0...Int.max), "Number of objects in the whole result."),
        ]
    }
}
