public import JSONValue
public import PhotoModel

/// `fetch.assets`: a page of a fetch result (spec S-14 to S-29; DESIGN 3.4).
public struct FetchAssets: Request {
    public static let method = "fetch.assets"
    public var fetch: FetchDescription
    /// The moment of the result; nil: now.
    public var token: ChangeToken?
    /// Position of the first object of the page.
    public var from: Int
    public var count: Int
    public var atLeast: ChangeToken?

    public static let maxPage = 1000

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

    public static let table = JSONTable(
        method,
        "A page of the assets that a fetch gives.",
        unknown: .refused,
        blank: FetchAssets(fetch: FetchDescription(.assets)),
        [
            .defaulted(
                "fetch",
                \.fetch,
                .object(FetchDescription.self),
                "Which assets in which order.",
                default: FetchDescription(.assets)
            ),
            .optional("token", \.token, .token, "The moment of the result, as its first page said; absent: now."),
            .defaulted("from", \.from, .count(0...Int.max), "Position of the first object of the page.", default: 0),
            .defaulted("count", \.count, .count(0...maxPage), "Objects of the page.", default: 100),
            .optional("atLeast", \.atLeast, .token, "Answer at this moment or a later one."),
        ]
    )

    public struct Result: JSONTabled {
        public var token: ChangeToken
        public var sequence: Int64
        /// Objects of the whole result, after offset and limit.
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

        public static let table = JSONTable(
            "AssetPage",
            "A page of assets.",
            unknown: .ignored,
            blank: Result(token: .none, count: 0, assets: []),
            [
                .required("token", \.token, .token, "The moment of the result."),
                .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction at which it was read."),
                .required("count", \.count, .count(0...Int.max), "Objects of the whole result."),
                .required("assets", \.assets, .list(of: .object(Asset.self), limit: maxPage), "The page."),
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
}

/// `fetch.collections`: albums and folders (spec S-18, S-19).
public struct FetchCollections: Request {
    public static let method = "fetch.collections"
    public var fetch: FetchDescription
    /// The moment of the result; nil: now.
    public var token: ChangeToken?
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

    public static let table = JSONTable(
        method,
        "A page of the collections that a fetch gives.",
        unknown: .refused,
        blank: FetchCollections(fetch: FetchDescription(.collections)),
        [
            .defaulted(
                "fetch",
                \.fetch,
                .object(FetchDescription.self),
                "Which collections in which order.",
                default: FetchDescription(.collections)
            ),
            .optional("token", \.token, .token, "The moment of the result, as its first page said; absent: now."),
            .defaulted("from", \.from, .count(0...Int.max), "Position of the first object of the page.", default: 0),
            .defaulted("count", \.count, .count(0...FetchAssets.maxPage), "Objects of the page.", default: 100),
            .optional("atLeast", \.atLeast, .token, "Answer at this moment or a later one."),
        ]
    )

    public struct Result: JSONTabled {
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
            self.lists = lists
            self.order = order
            self.token = token
            self.sequence = token.sequence
            self.count = count
            self.collections = collections
        }

        public static let table = JSONTable(
            "CollectionPage",
            "A page of collections.",
            unknown: .ignored,
            blank: Result(token: .none, count: 0, collections: []),
            [
                .required("token", \.token, .token, "The moment of the result."),
                .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction at which it was read."),
                .required("count", \.count, .count(0...Int.max), "Objects of the whole result."),
                .required(
                    "collections",
                    \.collections,
                    .list(of: .object(AssetCollection.self), limit: FetchAssets.maxPage),
                    "The page; of children its albums."
                ),
                .defaulted(
                    "lists",
                    \.lists,
                    .list(of: .object(CollectionList.self), limit: FetchAssets.maxPage),
                    "Of children: its folders.",
                    default: []
                ),
                .defaulted(
                    "order",
                    \.order,
                    .list(of: .id(), limit: FetchAssets.maxPage),
                    "Of children: the order of both.",
                    default: []
                ),
            ]
        )
    }
}
