public import JSONValue
public import PhotoModel

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
            .required("fetch", \.fetch, .fetch(), "The fetch."),
            .optional("token", \.token, .token, "Token of its result; absent: the newest."),
            .required("ids", \.ids, .list(of: .id(), limit: FetchAssets.maxPage), "The objects to find."),
            .defaulted("from", \.from, .count(0...Int.max), "First index to search.", default: 0),
            .optional("count", \.count, .count(0...Int.max), "Number of indexes to search; absent: all."),
            .atLeast(\.atLeast),
        ]
    )

    /// The indexes of the objects.
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
