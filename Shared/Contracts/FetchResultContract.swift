public import JSONValue
public import PhotoModel

/// `fetch.counts`: the number of objects of several fetches, without reading the objects (S-29, S-39, P-18).
public struct FetchCounts: Request {
    public static let method = "fetch.counts"
    /// The fetches to count.
    public var fetches: [FetchDescription]
    /// Token of the results; nil: the newest.
    public var token: ChangeToken?
    /// True if to also count each media type.
    public var byMediaType: Bool
    /// The service responds once it has reached this token; nil to respond at once.
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
        "Counts the objects of several fetches.",
        blank: FetchCounts(fetches: []),
        [
            .required(
                "fetches",
                \.fetches,
                .list(of: .object(FetchDescription.self), limit: maxFetches),
                "The fetches to count."
            ),
            .optional("token", \.token, .token, "Token of the results; absent: the newest."),
            .defaulted("byMediaType", \.byMediaType, .flag, "Also count each media type.", default: false),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        /// Token of the results.
        public var token: ChangeToken
        /// Counts in the order of the fetches.
        public var counts: [Int]
        /// Counts by media type name, in the order of the fetches; empty unless requested, and only for asset fetches.
        public var byMediaType: [JSONObject]

        public init(token: ChangeToken, counts: [Int], byMediaType: [JSONObject] = []) {
            self.token = token
            self.counts = counts
            self.byMediaType = byMediaType
        }

        public static let table = JSONTable(
            "Counts",
            "Number of objects of each fetch.",
            unknown: .ignored,
            blank: Result(token: .none, counts: []),
            [
                .required("token", \.token, .token, "Token of the results."),
                .required("counts", \.counts, .list(of: .count(0...Int.max), limit: maxFetches), "One for each fetch."),
                .defaulted(
                    "byMediaType",
                    \.byMediaType,
                    .list(of: .members, limit: maxFetches),
                    "One object per fetch: media type name and count.",
                    default: []
                ),
            ]
        )
    }
}

/// `fetch.find`: the indexes of objects in a result (S-26: `indexOfObject:`, `containsObject:`).
public struct FindInFetch: Request {
    public static let method = "fetch.find"
    /// The fetch.
    public var fetch: FetchDescription
    /// Token of its result; nil: the newest.
    public var token: ChangeToken?
    /// The objects to find.
    public var ids: [ObjectID]
    /// The first index to search.
    public var from: Int
    /// Number of indexes to search; nil: all.
    public var count: Int?
    /// The service responds once it has reached this token; nil to respond at once.
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
        "The indexes of objects in a fetch result.",
        blank: FindInFetch(fetch: FetchDescription(.assets), ids: []),
        [
            .required("fetch", \.fetch, .object(FetchDescription.self), "The fetch."),
            .optional("token", \.token, .token, "Token of its result; absent: the newest."),
            .required("ids", \.ids, .list(of: .id(), limit: FetchAssets.maxPage), "The objects to find."),
            .defaulted("from", \.from, .count(0...Int.max), "First index to search.", default: 0),
            .optional("count", \.count, .count(0...Int.max), "Number of indexes to search; absent: all."),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        /// Token of the result.
        public var token: ChangeToken
        /// An index or null (`NSNotFound`) for each identifier.
        public var indexes: [JSON]

        public init(token: ChangeToken, indexes: [JSON]) {
            self.token = token
            self.indexes = indexes
        }

        public static let table = JSONTable(
            "Found",
            "Indexes of the objects.",
            unknown: .ignored,
            blank: Result(token: .none, indexes: []),
            [
                .required("token", \.token, .token, "Token of the result."),
                .required(
                    "indexes",
                    \.indexes,
                    .list(of: .any, limit: FetchAssets.maxPage),
                    "For each identifier its index, or null if it is not in the result."
                ),
            ]
        )
    }
}

/// `fetch.objects`: the assets at given indexes of a result (S-26: `objectsAtIndexes:`).
public struct FetchObjects: Request {
    public static let method = "fetch.objects"
    /// The fetch.
    public var fetch: FetchDescription
    /// Token of its result; nil: the newest.
    public var token: ChangeToken?
    /// Indexes; range_error if one is beyond the end.
    public var at: [Int]
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(fetch: FetchDescription, token: ChangeToken? = nil, at: [Int], atLeast: ChangeToken? = nil) {
        self.fetch = fetch
        self.token = token
        self.at = at
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The assets at given indexes of a result, in the order of the indexes.",
        blank: FetchObjects(fetch: FetchDescription(.assets), at: []),
        [
            .required("fetch", \.fetch, .object(FetchDescription.self), "The fetch."),
            .optional("token", \.token, .token, "Token of its result; absent: the newest."),
            .required(
                "at",
                \.at,
                .list(of: .count(0...Int.max), limit: FetchAssets.maxPage),
                "Indexes; range_error if one is beyond the end."
            ),
            .atLeast(\.atLeast),
        ]
    )

    public typealias Result = AssetPage
}
