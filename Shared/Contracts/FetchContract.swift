public import JSONValue
public import PhotoModel

/// `fetch.assets`: a page of assets (spec S-14 to S-29; DESIGN 3.4).
public typealias FetchAssets = FetchPage<AssetPage>

/// `fetch.collections`: a page of albums, smart albums and moments, or of what stands in a folder (spec S-18, S-19).
public typealias FetchCollections = FetchPage<CollectionPage>

/// `fetch.lists`: a page of folders and lists of moments (spec S-06, S-07, T-05).
public typealias FetchLists = FetchPage<ListPage>

/// A page of a fetch result; the kind of page says what is fetched.
public struct FetchPage<Page: ResultPage>: Request {
    public typealias Result = Page
    public static var method: String { Page.method }
    public static var table: JSONTable<Self> { Page.request }
    public static var maxPage: Int { 1000 }

    public var fetch: FetchDescription
    /// The moment of the result; nil: now.
    public var token: ChangeToken?
    /// Position of the first object of the page.
    public var from: Int
    public var count: Int
    public var atLeast: ChangeToken?

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

    /// The table of the request.
    ///
    /// - Parameters:
    ///   - kind: what is fetched where no fetch is given
    ///   - what: the same, in words
    fileprivate static func parameters(_ summary: String, of kind: FetchSubject, _ what: String) -> JSONTable<Self> {
        parameters(
            summary,
            blank: Self(fetch: FetchDescription(kind)),
            [
                .fetch(\.fetch, "Which \(what) in which order.", of: kind),
                .optional("token", \.token, .token, "The moment of the result, as its first page said; absent: now."),
                .defaulted(
                    "from",
                    \.from,
                    .count(0...Int.max),
                    "Position of the first object of the page.",
                    default: 0
                ),
                .defaulted("count", \.count, .count(0...maxPage), "Objects of the page.", default: 100),
                .atLeast(\.atLeast),
            ]
        )
    }
}

/// A page of objects of a result.
public protocol ResultPage: JSONTabled {
    /// The name on the wire of the request for it.
    static var method: String { get }
    static var request: JSONTable<FetchPage<Self>> { get }

    /// The moment of the result, also as a number.
    var token: ChangeToken { get set }
    var sequence: Int64 { get set }
    /// Objects of the whole result, after offset and limit.
    var count: Int { get set }
}

extension ResultPage {
    /// What every page says of its result.
    fileprivate static var ofResult: [JSONField<Self>] {
        [
            .required("token", \.token, .token, "The moment of the result."),
            .sequence(\.sequence),
            .required("count", \.count, .count(0...Int.max), "Objects of the whole result."),
        ]
    }
}

/// What `fetch.assets` and `fetch.objects` answer.
public struct AssetPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    public var assets: [Asset]
    /// Identifiers asked for that no asset has (spec T-01).
    public var missing: [ObjectID]
    /// Bytes of the page's assets that are opened no more, because workers came to harm over them.
    public var quarantined: [QuarantinedResource]

    public init(
        token: ChangeToken,
        count: Int,
        assets: [Asset],
        missing: [ObjectID] = [],
        quarantined: [QuarantinedResource] = []
    ) {
        self.token = token
        self.sequence = token.sequence
        self.count = count
        self.assets = assets
        self.missing = missing
        self.quarantined = quarantined
    }

    /// Why bytes that one of the page's assets has are opened no more; nil where they may be.
    public func quarantine(of digest: String) -> QuarantinedResource? {
        quarantined.first { $0.digest == digest }
    }

    public static let method = "fetch.assets"
    public static let request = FetchAssets.parameters(
        "A page of the assets that a fetch gives.",
        of: .assets,
        "assets"
    )

    public static let table = JSONTable(
        "AssetPage",
        "A page of assets.",
        unknown: .ignored,
        blank: AssetPage(token: .none, count: 0, assets: []),
        ofResult + [
            .required("assets", \.assets, .list(of: .object(Asset.self), limit: FetchAssets.maxPage), "The page."),
            .defaulted(
                "missing",
                \.missing,
                .list(of: .id(), limit: 10_000),
                "Identifiers that no asset has.",
                default: []
            ),
            .defaulted(
                "quarantined",
                \.quarantined,
                .list(of: .object(QuarantinedResource.self), limit: 100_000),
                "Bytes of these assets that are opened no more, and why.",
                default: []
            ),
        ]
    )
}

/// What `fetch.collections` answers.
public struct CollectionPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    /// The albums and other collections of the page.
    public var collections: [AssetCollection]
    /// Of children: the folders of the page.
    public var lists: [CollectionList]
    /// Of children: collections and folders of the page, mixed, in their order.
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
        "A page of the collections that a fetch gives.",
        of: .collections,
        "collections"
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
                .list(of: .object(AssetCollection.self), limit: FetchCollections.maxPage),
                "The page; of children its albums."
            ),
            .defaulted(
                "lists",
                \.lists,
                .list(of: .object(CollectionList.self), limit: FetchCollections.maxPage),
                "Of children: its folders.",
                default: []
            ),
            .defaulted(
                "order",
                \.order,
                .list(of: .id(), limit: FetchCollections.maxPage),
                "Of children: the order of both.",
                default: []
            ),
        ]
    )
}

/// What `fetch.lists` answers.
public struct ListPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    public var lists: [CollectionList]

    public init(token: ChangeToken, count: Int, lists: [CollectionList]) {
        self.token = token
        self.sequence = token.sequence
        self.count = count
        self.lists = lists
    }

    public static let method = "fetch.lists"
    public static let request = FetchLists.parameters(
        "A page of the folders or lists of moments that a fetch gives.",
        of: .lists,
        "lists"
    )

    public static let table = JSONTable(
        "ListPage",
        "A page of lists.",
        unknown: .ignored,
        blank: ListPage(token: .none, count: 0, lists: []),
        ofResult + [
            .required("lists", \.lists, .list(of: .object(CollectionList.self), limit: FetchLists.maxPage), "The page.")
        ]
    )
}
