public import JSONValue
public import PhotoModel

/// The topics of the live feed.
public enum FeedTopic {
    public static let changes = "changes"
    public static let head = "head"
    public static let maxBytes = 64

    public static func object(_ id: ObjectID) -> String {
        switch id.kind {
        case .asset: "asset.\(id)"
        case .assetCollection: "collection.\(id)"
        case .collectionList: "list.\(id)"
        }
    }

    /// Returns the topic of an observed fetch.
    public static func fetch(_ observation: String) -> String { "fetch.\(observation)" }

    public static func edit(_ id: String) -> String { "edit.\(id)" }
}

/// A page of the change log.
public struct ChangePage: JSONTabled {
    /// Complete records in the order of their sequences, as JSON so that they can be forwarded without being decoded.
    public var records: [JSON]
    /// The token at which the next page begins; it advances even if no record matches the topics.
    public var token: ChangeToken
    /// The oldest token from which the history is complete.
    public var oldest: ChangeToken
    /// The newest token.
    public var head: ChangeToken

    public init(records: [JSON], token: ChangeToken, oldest: ChangeToken, head: ChangeToken) {
        self.records = records
        self.token = token
        self.oldest = oldest
        self.head = head
    }

    public var hasMore: Bool { token.sequence < head.sequence }

    public static let table = JSONTable(
        "ChangePage",
        "A page of the change log.",
        unknown: .ignored,
        blank: ChangePage(records: [], token: .none, oldest: .none, head: .none),
        [
            .required("records", \.records, .list(of: .any, limit: 10_000), "Change records, oldest first."),
            .required("token", \.token, .token, "Token at which the next page begins."),
            .required("oldest", \.oldest, .token, "The oldest token from which the history is complete."),
            .required("head", \.head, .token, "The newest token."),
        ]
    )
}

/// `changes.since` of the catalog: a page of the change log. `feed.since` of the broker is ``FeedSince``.
public struct ChangesSince: Request {
    public typealias Result = ChangePage
    public static let method = "changes.since"
    /// The last token seen; nil to begin with the oldest record.
    public var token: ChangeToken?
    public var limit: Int
    /// Topics to filter by, see ``FeedTopicFilter``; empty for all records.
    public var topics: [String]

    public static let maxRecords = 1000
    public static let maxTopics = 1000

    public init(token: ChangeToken?, limit: Int = 100, topics: [String] = []) {
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
        fields(token: \.token, limit: \.limit, topics: \.topics)
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

/// The result of a stream of records, which ends only when it is cancelled or fails.
public struct FollowEnd: JSONTabled {
    /// The last token sent.
    public var token: ChangeToken
    public init(token: ChangeToken) { self.token = token }
    public static let table = JSONTable(
        "FollowEnd",
        "Token at which the stream ended.",
        unknown: .ignored,
        blank: FollowEnd(token: .none),
        [.required("token", \.token, .token, "The last token sent.")]
    )
}

/// `changes.follow` of the catalog: the records after a token, then each new record, until cancelled.
///
/// Notifications: `changes.records {records, token}`, with several records if they are available.
public struct ChangesFollow: Request {
    public typealias Result = FollowEnd
    public static let method = "changes.follow"
    public static let notification = "changes.records"
    /// The last token seen; nil: new records only.
    public var token: ChangeToken?

    public init(token: ChangeToken?) { self.token = token }

    public static let table = parameters(
        "Streams the records after a token, then each new record, until cancelled. Send it with credit.",
        blank: ChangesFollow(token: nil),
        [.optional("token", \.token, .token, "The last token seen; absent: new records only.")]
    )
}

/// `feed.follow` of the broker: a gapless stream for one client, paced by its credit.
///
/// Notifications: `feed.records {records, token}`, and `feed.progress {token}` while no record matches.
public struct FeedFollow: Request {
    public typealias Result = FollowEnd
    public static let method = "feed.follow"
    public static let notification = "feed.records"
    public static let progress = "feed.progress"
    /// The last token seen; nil: new records only.
    public var token: ChangeToken?
    /// Only records that carry one of these topics; all if empty or if changes is among them.
    public var topics: [String]

    public init(token: ChangeToken?, topics: [String] = []) {
        self.token = token
        self.topics = topics
    }

    public static let table = parameters(
        "Streams the records after a token, then each new record, at the client's pace. Send it with credit.",
        blank: FeedFollow(token: nil),
        [
            .optional("token", \.token, .token, "The last token seen; absent: new records only."),
            .defaulted(
                "topics",
                \.topics,
                .feedTopics,
                "Only records that carry one of these topics; all if empty or if changes is among them.",
                default: []
            ),
        ]
    )
}

/// The `head` message, published once a second and returned by `feed.head`.
public struct FeedHead: JSONTabled {
    /// Sequence of the newest published transaction.
    public var sequence: Int64
    /// The history is complete after this sequence.
    public var oldest: Int64
    /// Id of the history; a restore makes a new one.
    public var library: String
    /// Identifies this run of the broker; new at each start.
    public var instance: String
    /// `library` and `sequence` as a token.
    public var token: ChangeToken

    public init(sequence: Int64, oldest: Int64, library: String, instance: String) {
        self.sequence = sequence
        self.oldest = oldest
        self.library = library
        self.instance = instance
        self.token = ChangeToken(library: library, sequence: sequence)
    }

    public static let table = JSONTable(
        "FeedHead",
        "The newest and the oldest sequence of the feed.",
        unknown: .ignored,
        blank: FeedHead(sequence: 0, oldest: 0, library: "", instance: ""),
        [
            .required("sequence", \.sequence, .integer(0...Int64.max), "Sequence of the newest published transaction."),
            .required("oldest", \.oldest, .integer(0...Int64.max), "The history is complete after this sequence."),
            .required("library", \.library, .text(maxBytes: 32), "Id of the history; a restore makes a new one."),
            .required("instance", \.instance, .text(maxBytes: 32), "New at each start of the broker."),
            .required("token", \.token, .token, "library and sequence as a token."),
        ]
    )
}

/// `feed.head`: the newest and the oldest sequence of the feed.
public struct FeedHeadRequest: Request {
    public typealias Result = FeedHead
    public static let method = "feed.head"
    public init() {}
    public static let table = parameters("The newest and the oldest sequence of the feed.", blank: FeedHeadRequest())
}

/// All requests of the change-broker.
public enum ChangeBrokerRequest: ServiceRequest {
    case since(FeedSince)
    case follow(FeedFollow)
    case head(FeedHeadRequest)
    case observe(FetchObserve)
    case unobserve(FetchUnobserve)
    case details(FetchDetails)
    case discover(Discover)
    case health(Health)
    case figures(MetricsRequest)

    public static let table = MethodTable<ChangeBrokerRequest>([
        .method(since),
        .method(follow),
        .method(head),
        .method(observe, limits: .large),
        .method(unobserve),
        .method(details, limits: .large),
        .method(discover),
        .method(health),
        .method(figures),
    ])
}
