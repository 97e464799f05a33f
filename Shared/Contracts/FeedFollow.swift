public import JSONValue
public import PhotoModel

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

/// The result of ``FeedFollow`` and ``ChangesFollow``, streams that end only when they are cancelled or fail.
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
