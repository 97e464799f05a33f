public import JSONValue
public import PhotoModel

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
