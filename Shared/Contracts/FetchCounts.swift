public import JSONValue
public import PhotoModel

/// `fetch.counts`: the number of objects of several fetches, without reading the objects (S-29, S-39, P-18).
public struct FetchCounts: Request {
    public static let method = "fetch.counts"
    /// The fetches to count.
    public var fetches: [FetchDescription]
    /// Token of the results; nil: the newest.
    public var token: ChangeToken?
    /// True to count also each media type.
    public var countsMediaTypes: Bool
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        fetches: [FetchDescription],
        token: ChangeToken? = nil,
        countsMediaTypes: Bool = false,
        atLeast: ChangeToken? = nil
    ) {
        self.fetches = fetches
        self.token = token
        self.countsMediaTypes = countsMediaTypes
        self.atLeast = atLeast
    }

    /// The maximum number of fetches in one request.
    public static let maxFetches = 1000

    public static let table = parameters(
        "Counts the objects of several fetches.",
        blank: FetchCounts(fetches: []),
        [
            .required(
                "fetches",
                \.fetches,
                .list(of: .fetch(), limit: maxFetches),
                "The fetches to count."
            ),
            .optional("token", \.token, .token, "Token of the results; absent: the newest."),
            .defaulted("byMediaType", \.countsMediaTypes, .flag, "Also count each media type.", default: false),
            .atLeast(\.atLeast),
        ]
    )

    /// The number of objects of each fetch.
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
