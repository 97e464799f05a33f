public import JSONValue
public import PhotoModel

/// `grants.history`: the decisions of the retained history.
public struct GrantHistory: Request {
    public static let method = "grants.history"
    /// The maximum number of entries in one request.
    public static let maxEntries = 1000
    /// Only decisions about this identity; nil for all.
    public var identity: String?
    /// The maximum number of entries; the latest are returned.
    public var count: Int

    public init(identity: String? = nil, count: Int = 100) {
        self.identity = identity
        self.count = count
    }

    public static let table = parameters(
        "Requests for access, decisions and answered questions, the latest first, as far as the history reaches back.",
        blank: GrantHistory(),
        [
            .optional(
                "identity",
                \.identity,
                .text(maxBytes: Grant.maxIdentityBytes),
                "Only what is about this identity."
            ),
            .defaulted("count", \.count, .count(1...maxEntries), "Maximum number of entries.", default: 100),
        ]
    )

    /// The decisions of the owner, the latest first.
    public struct Result: JSONTabled {
        /// The records, each with only its grants and questions.
        public var records: [ChangeRecord]

        public init(records: [ChangeRecord]) { self.records = records }

        public static let table = JSONTable(
            "GrantHistory",
            "Decisions of the owner, the latest first.",
            unknown: .ignored,
            blank: Result(records: []),
            [
                .required(
                    "records",
                    \.records,
                    .list(of: .object(ChangeRecord.self), limit: maxEntries),
                    "The records, each with its grants and questions only."
                )
            ]
        )
    }
}
