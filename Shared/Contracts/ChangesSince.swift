public import JSONValue
public import PhotoModel

/// `changes.since` of the catalog: a page of the change log. `feed.since` of the broker is ``FeedSince``.
public struct ChangesSince: Request {
    public typealias Result = ChangePage
    public static let method = "changes.since"
    /// The last token seen; nil to begin with the oldest record.
    public var token: ChangeToken?
    public var limit: Int
    /// Topics to filter by, see ``FeedTopicFilter``; empty for all records.
    public var topics: [String]
    /// For services: the client with a limited grant whose view is requested.
    public var onBehalfOf: String?

    public static let maxRecords = 1000
    public static let maxTopics = 1000

    public init(token: ChangeToken?, limit: Int = 100, topics: [String] = [], onBehalfOf: String? = nil) {
        self.onBehalfOf = onBehalfOf
        self.token = token
        self.limit = limit
        self.topics = topics
    }

    static func fields<Root>(
        token: JSONField<Root>.Path<ChangeToken?>,
        limit: JSONField<Root>.Path<Int>,
        topics: JSONField<Root>.Path<[String]>
    ) -> [JSONField<Root>] {
        [
            .optional("token", token, .token, "The last token seen; absent: from the oldest retained record."),
            .defaulted("limit", limit, .count(1...maxRecords), "Maximum number of records.", default: 100),
            .defaulted(
                "topics",
                topics,
                .feedTopics,
                "Only records that carry one of these topics; all if empty or if changes is among them.",
                default: []
            ),
        ]
    }

    public static let table = parameters(
        "A page of the change log after a token.",
        blank: ChangesSince(token: nil),
        fields(token: \.token, limit: \.limit, topics: \.topics) + [.limitedClient(\.onBehalfOf)]
    )
}

/// `feed.since` of the broker: the same page as ``ChangesSince``.
public struct FeedSince: Request {
    public typealias Result = ChangePage
    public static let method = "feed.since"
    public var token: ChangeToken?
    public var limit: Int
    public var topics: [String]

    public init(token: ChangeToken?, limit: Int = 100, topics: [String] = []) {
        self.token = token
        self.limit = limit
        self.topics = topics
    }

    public static let table = parameters(
        "A page of the change log after a token.",
        blank: FeedSince(token: nil),
        ChangesSince.fields(token: \.token, limit: \.limit, topics: \.topics)
    )
}

extension JSONField {
    /// The client with a limited grant whose view a service asks for.
    static func limitedClient(_ path: Path<String?>) -> JSONField {
        .optional(
            "onBehalfOf",
            path,
            .text(maxBytes: Grant.maxIdentityBytes),
            "For services: the client with a limited grant whose view is wanted."
        )
    }
}
