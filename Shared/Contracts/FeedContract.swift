public import JSONValue
public import PhotoModel

/// The topics of the live feed (DESIGN 3.3).
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

    /// The changes of an observed fetch.
    public static func fetch(_ observation: String) -> String { "fetch.\(observation)" }

    public static func edit(_ id: String) -> String { "edit.\(id)" }
}

/// A page of the history.
public struct ChangePage: JSONTabled {
    /// Whole records in the order of their sequences, as JSON so that they need not be read to be passed on.
    public var records: [JSON]
    /// Where the next page begins: moves on even where no record fits the topics.
    public var token: ChangeToken
    /// The oldest token from which history is complete.
    public var oldest: ChangeToken
    /// The newest.
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
        "A page of the history.",
        unknown: .ignored,
        blank: ChangePage(records: [], token: .none, oldest: .none, head: .none),
        [
            .required("records", \.records, .list(of: .any, limit: 10_000), "Change records, oldest first."),
            .required("token", \.token, .token, "Where the next page begins."),
            .required("oldest", \.oldest, .token, "The oldest token from which history is complete."),
            .required("head", \.head, .token, "The newest token."),
        ]
    )
}

/// `changes.since` of the catalog and `feed.since` of the broker: a page of the history.
public struct ChangesSince: Request {
    public typealias Result = ChangePage
    public static let method = "changes.since"
    /// nil: from the oldest.
    public var token: ChangeToken?
    public var limit: Int
    /// As ``FeedTopicFilter`` reads them; empty: all.
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
            .optional("token", token, .token, "The last token seen; absent: from the oldest kept."),
            .defaulted("limit", limit, .count(1...maxRecords), "Most records to answer.", default: 100),
            .defaulted(
                "topics",
                topics,
                .feedTopics,
                "Only records that carry one of these topics; none, or changes among them: all.",
                default: []
            ),
        ]
    }

    public static let table = parameters(
        "A page of the history after a token.",
        blank: ChangesSince(token: nil),
        fields(token: \.token, limit: \.limit, topics: \.topics)
    )
}

/// `feed.since`: the same page from the broker.
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
        "A page of the history after a token.",
        blank: FeedSince(token: nil),
        ChangesSince.fields(token: \.token, limit: \.limit, topics: \.topics)
    )
}

/// How a stream of records ended: only a stop or an error ends one.
public struct FollowEnd: JSONTabled {
    public var token: ChangeToken
    public init(token: ChangeToken) { self.token = token }
    public static let table = JSONTable(
        "FollowEnd",
        "Where the stream ended.",
        unknown: .ignored,
        blank: FollowEnd(token: .none),
        [.required("token", \.token, .token, "The last token sent.")]
    )
}

/// `changes.follow` of the catalog: history after a token, then each new record, until cancelled.
///
/// Notifications: `changes.records {records, token}`, several records in one where they are at hand.
public struct ChangesFollow: Request {
    public typealias Result = FollowEnd
    public static let method = "changes.follow"
    public static let notification = "changes.records"
    public var token: ChangeToken?

    public init(token: ChangeToken?) { self.token = token }

    public static let table = parameters(
        "History after a token, then each new record as it is committed, until cancelled. Open it with credit.",
        blank: ChangesFollow(token: nil),
        [.optional("token", \.token, .token, "The last token seen; absent: from now on.")]
    )
}

/// `feed.follow` of the broker: the gapless stream for one reader at its own pace.
///
/// Notifications: `feed.records {records, token}`, and `feed.progress {token}` when nothing matched for a while.
public struct FeedFollow: Request {
    public typealias Result = FollowEnd
    public static let method = "feed.follow"
    public static let notification = "feed.records"
    public static let progress = "feed.progress"
    public var token: ChangeToken?
    public var topics: [String]

    public init(token: ChangeToken?, topics: [String] = []) {
        self.token = token
        self.topics = topics
    }

    public static let table = parameters(
        "History after a token, then each new record, at the reader's own pace. Open it with credit.",
        blank: FeedFollow(token: nil),
        [
            .optional("token", \.token, .token, "The last token seen; absent: from now on."),
            .defaulted(
                "topics",
                \.topics,
                .feedTopics,
                "Only records that carry one of these topics; none, or changes among them: all.",
                default: []
            ),
        ]
    )
}

/// The `head` message, sent once a second and in answer to `feed.head`.
public struct FeedHead: JSONTabled {
    public var sequence: Int64
    public var oldest: Int64
    public var library: String
    /// New at each start of the broker.
    public var instance: String
    /// Names the same moment as `sequence` and `library`, to ask for history with.
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
            .required("sequence", \.sequence, .integer(0...Int64.max), "The newest transaction published."),
            .required("oldest", \.oldest, .integer(0...Int64.max), "History is complete after this one."),
            .required("library", \.library, .text(maxBytes: 32), "The history."),
            .required("instance", \.instance, .text(maxBytes: 32), "New at each start of the broker."),
            .required("token", \.token, .token, "The same moment as a token, to ask for history with."),
        ]
    )
}

/// `feed.head`: where the feed stands.
public struct FeedHeadRequest: Request {
    public typealias Result = FeedHead
    public static let method = "feed.head"
    public init() {}
    public static let table = parameters("Where the feed stands.", blank: FeedHeadRequest())
}

/// Every request of the change-broker.
public enum ChangeBrokerRequest: ServiceRequest {
    case since(FeedSince)
    case follow(FeedFollow)
    case head(FeedHeadRequest)
    case observe(FetchObserve)
    case unobserve(FetchUnobserve)
    case details(FetchDetails)
    case discover(Discover)
    case health(Health)
    case figures(Figures)

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
