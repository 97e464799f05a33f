public import JSONValue
public import PhotoModel

/// `fetch.keys` of the catalog: the sort keys of a whole result, in order and all at one token.
///
/// `fetch.keys {}` notifications carry them as attachments. Each key is a length of four bytes in big-endian order,
/// followed by the bytes that `ResultKey` of PhotoModel encodes. Offset and limit of the fetch are ignored.
public struct FetchKeys: Request {
    public static let method = "fetch.keys"
    public static let notification = "fetch.keys"
    /// The entities to fetch and their order.
    public var fetch: FetchDescription
    /// The maximum number of keys; a larger result is refused with `limit_exceeded`.
    public var maxCount: Int

    public init(fetch: FetchDescription, maxCount: Int) {
        self.fetch = fetch
        self.maxCount = maxCount
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
        ]
    )

    public struct Result: JSONTabled {
        /// Token of the keys.
        public var token: ChangeToken
        /// Number of keys.
        public var count: Int

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
            ]
        )
    }
}
