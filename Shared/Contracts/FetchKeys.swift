public import JSONValue
public import PhotoModel

/// `fetch.keys` of the catalog: the sort keys of a whole result, in order and all at one token.
///
/// `fetch.keys {}` notifications carry them as attachments. Each key is a length of four bytes in big-endian order,
/// followed by the bytes that `ResultKey` of PhotoModel encodes. Offset and limit of the fetch are ignored. The
/// response to a service that asks for the view of a limited grant has the list of that grant as its first attachment:
/// 27 bytes for each identifier. For a fetch that depends on the moments of the view (`Fetch.dependsOnViewMoments` of
/// PhotoModel) the second attachment has the assets of the list that are in a moment (`MomentMember.bytes(of:)`).
public struct FetchKeys: Request {
    public static let method = "fetch.keys"
    /// The notification with a part of the keys.
    public static let notification = "fetch.keys"
    /// The maximum number of collections on which a result may depend.
    public static let maxScope = 100_000
    /// The entities to fetch and their order.
    public var fetch: FetchDescription
    /// The maximum number of keys; a larger result is refused with `limit_exceeded`.
    public var maxCount: Int
    /// The token of the keys; nil: the newest.
    public var token: ChangeToken?
    /// A token at which the object of the fetch may still have existed. If it has been deleted since, the result is
    /// empty. Without `since`, or if the object did not exist then either, the request is refused. Moments and lists of
    /// moments appear and disappear with their assets: with `since` their results are empty, whether or not they
    /// existed.
    public var since: ChangeToken?
    /// For services: the client with a limited grant whose view is requested.
    public var onBehalfOf: String?

    public init(
        fetch: FetchDescription,
        maxCount: Int,
        token: ChangeToken? = nil,
        since: ChangeToken? = nil,
        onBehalfOf: String? = nil
    ) {
        self.onBehalfOf = onBehalfOf
        self.fetch = fetch
        self.maxCount = maxCount
        self.token = token
        self.since = since
    }

    public static let table = parameters(
        "The sort keys of a whole result, for programs that maintain it. Send it with credit.",
        blank: FetchKeys(fetch: FetchDescription(.assets), maxCount: Int(Int32.max)),
        [
            .fetch(\.fetch, "The entities to fetch and their order.", of: .assets),
            .defaulted(
                "maxCount",
                \.maxCount,
                .count(0...Int(Int32.max)),
                "A result with more keys is refused with limit_exceeded.",
                default: Int(Int32.max)
            ),
            .optional("token", \.token, .token, "The token of the keys; absent: the newest."),
            .optional(
                "since",
                \.since,
                .token,
                "If the object of the fetch existed at this token and is deleted, or if it is a moment or a list of "
                    + "moments, the result is empty; else the request is refused with identifier_not_found."
            ),
            .limitedClient(\.onBehalfOf),
        ]
    )

    /// The token and the number of the keys that were sent.
    public struct Result: JSONTabled {
        /// Token of the keys.
        public var token: ChangeToken
        /// Number of keys.
        public var count: Int
        /// True if the object of the fetch is deleted (see ``FetchKeys/since``).
        public var objectWasDeleted = false
        /// The collections on which the result depends (`Fetch.scope` of PhotoModel); nil if it depends on none.
        public var scope: [ObjectID]?

        public init(token: ChangeToken, count: Int) {
            self.token = token
            self.count = count
        }

        public static let table = JSONTable(
            "FetchKeysEnd",
            "Token and number of the keys that were sent.",
            unknown: .ignored,
            blank: Result(token: .none, count: 0),
            [
                .required("token", \.token, .token, "Token of the keys."),
                .required("count", \.count, .count(0...Int.max), "Number of keys."),
                .objectWasDeleted(\.objectWasDeleted),
                .optional(
                    "scope",
                    \.scope,
                    .list(of: .id(), limit: FetchKeys.maxScope),
                    "The objects below the folder of the fetch, or those that contain its object; absent for others."
                ),
            ]
        )
    }
}
