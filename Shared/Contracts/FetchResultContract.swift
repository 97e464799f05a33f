public import JSONValue
public import PhotoModel

/// `fetch.counts`: how many each of several fetches gives, without reading what (spec S-29, S-39, P-18).
public struct FetchCounts: Request {
    public static let method = "fetch.counts"
    public var fetches: [FetchDescription]
    public var token: ChangeToken?
    public var byMediaType: Bool
    public var atLeast: ChangeToken?

    public init(
        fetches: [FetchDescription],
        token: ChangeToken? = nil,
        byMediaType: Bool = false,
        atLeast: ChangeToken? = nil
    ) {
        self.fetches = fetches
        self.token = token
        self.byMediaType = byMediaType
        self.atLeast = atLeast
    }

    public static let maxFetches = 1000

    public static let table = parameters(
        "How many each of several fetches gives.",
        blank: FetchCounts(fetches: []),
        [
            .required(
                "fetches",
                \.fetches,
                .list(of: .object(FetchDescription.self), limit: maxFetches),
                "What is counted."
            ),
            .optional("token", \.token, .token, "The moment of the results; absent: now."),
            .defaulted("byMediaType", \.byMediaType, .flag, "Also how many of each kind of medium.", default: false),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        public var token: ChangeToken
        /// In the order of the fetches.
        public var counts: [Int]
        /// By name of the medium, where it was asked for and the fetch is of assets.
        public var byMediaType: [JSONObject]

        public init(token: ChangeToken, counts: [Int], byMediaType: [JSONObject] = []) {
            self.token = token
            self.counts = counts
            self.byMediaType = byMediaType
        }

        public static let table = JSONTable(
            "Counts",
            "How many each fetch gives.",
            unknown: .ignored,
            blank: Result(token: .none, counts: []),
            [
                .required("token", \.token, .token, "The moment of the results."),
                .required("counts", \.counts, .list(of: .count(0...Int.max), limit: maxFetches), "One for each fetch."),
                .defaulted(
                    "byMediaType",
                    \.byMediaType,
                    .list(of: .members, limit: maxFetches),
                    "One for each fetch: name of the medium and how many.",
                    default: []
                ),
            ]
        )
    }
}

/// `fetch.find`: where objects stand in a result (spec S-26: `indexOfObject:`, `containsObject:`).
public struct FindInFetch: Request {
    public static let method = "fetch.find"
    public var fetch: FetchDescription
    public var token: ChangeToken?
    public var ids: [ObjectID]
    /// Looked at: positions from here on, and how many.
    public var from: Int
    public var count: Int?
    public var atLeast: ChangeToken?

    public init(
        fetch: FetchDescription,
        token: ChangeToken? = nil,
        ids: [ObjectID],
        from: Int = 0,
        count: Int? = nil,
        atLeast: ChangeToken? = nil
    ) {
        self.fetch = fetch
        self.token = token
        self.ids = ids
        self.from = from
        self.count = count
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Where objects stand in the result of a fetch.",
        blank: FindInFetch(fetch: FetchDescription(.assets), ids: []),
        [
            .required("fetch", \.fetch, .object(FetchDescription.self), "Which result."),
            .optional("token", \.token, .token, "Its moment; absent: now."),
            .required("ids", \.ids, .list(of: .id(), limit: FetchAssets.maxPage), "What is looked for."),
            .defaulted("from", \.from, .count(0...Int.max), "Looks from this position on.", default: 0),
            .optional("count", \.count, .count(0...Int.max), "Looks at so many positions; absent: all."),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        public var token: ChangeToken
        /// A number or null (`NSNotFound`) for each identifier.
        public var indexes: [JSON]

        public init(token: ChangeToken, indexes: [JSON]) {
            self.token = token
            self.indexes = indexes
        }

        public static let table = JSONTable(
            "Found",
            "Where objects stand.",
            unknown: .ignored,
            blank: Result(token: .none, indexes: []),
            [
                .required("token", \.token, .token, "The moment of the result."),
                .required(
                    "indexes",
                    \.indexes,
                    .list(of: .any, limit: FetchAssets.maxPage),
                    "For each identifier its position, or null where it is not in the result."
                ),
            ]
        )
    }
}

/// `fetch.objects`: the assets at some positions of a result (spec S-26: `objectsAtIndexes:`).
public struct FetchObjects: Request {
    public static let method = "fetch.objects"
    public var fetch: FetchDescription
    public var token: ChangeToken?
    public var at: [Int]
    public var atLeast: ChangeToken?

    public init(fetch: FetchDescription, token: ChangeToken? = nil, at: [Int], atLeast: ChangeToken? = nil) {
        self.fetch = fetch
        self.token = token
        self.at = at
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The assets at some positions of a result, in the order of the positions.",
        blank: FetchObjects(fetch: FetchDescription(.assets), at: []),
        [
            .required("fetch", \.fetch, .object(FetchDescription.self), "Which result."),
            .optional("token", \.token, .token, "Its moment; absent: now."),
            .required(
                "at",
                \.at,
                .list(of: .count(0...Int.max), limit: FetchAssets.maxPage),
                "Positions; beyond the end is a range_error."
            ),
            .atLeast(\.atLeast),
        ]
    )

    public typealias Result = AssetPage
}
