public import JSONValue
public import PhotoModel

/// The topics of the live feed.
public enum FeedTopic {
    public static let changes = "changes"
    public static let head = "head"
    /// Grants that were asked for or decided, and questions about consent.
    public static let grants = Grant.topic
    /// The status of the library: it can be read and written, or not (``LibraryStatus``).
    public static let availability = "availability"
    /// Uploads and downloads whose state has changed, or whose transfer proceeds (``UploadJobPage``).
    public static let jobs = "jobs"
    public static let maxBytes = 64

    /// Returns the topic of an asset, a collection or a list.
    public static func object(_ id: ObjectID) -> String { ChangeRecord.topic(of: id) }

    /// Returns the topic of an observed fetch.
    public static func fetch(_ observation: String) -> String { "fetch.\(observation)" }

    /// Returns the asset that a topic is about; nil for all other topics.
    public static func asset(of topic: String) -> ObjectID? {
        let prefix = ChangeRecord.TopicPrefix.asset
        return topic.hasPrefix(prefix) ? ObjectID(String(Substring(topic.utf8.dropFirst(prefix.utf8.count)))) : nil
    }

    /// Returns the topic of a published edit.
    public static func edit(_ id: String) -> String { ChangeRecord.TopicPrefix.edit + id }
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

/// `feed.head`: the newest and the oldest sequence of the feed.
public struct FeedHeadRequest: Request {
    public typealias Result = FeedHead
    public static let method = "feed.head"
    public init() {}
    public static let table = parameters("The newest and the oldest sequence of the feed.", blank: FeedHeadRequest())
}
