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

extension JSONField {
    /// Returns the field `onBehalfOf`: the client with a limited grant whose view a service requests.
    static func limitedClient(_ path: Path<String?>) -> JSONField {
        .optional(
            "onBehalfOf",
            path,
            .text(maxBytes: Grant.maxIdentityBytes),
            "For services: the client with a limited grant whose view is requested."
        )
    }
}

// MARK: - Pages

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

/// A ``ChangePage`` whose records stay encoded, so that they are forwarded without being parsed.
public struct EncodedChangePage: Sendable {
    public var records: [[UInt8]]
    /// The token at which the next page begins.
    public var token: ChangeToken
    public var oldest: ChangeToken
    public var head: ChangeToken

    public init(records: [[UInt8]], token: ChangeToken, oldest: ChangeToken, head: ChangeToken) {
        self.records = records
        self.token = token
        self.oldest = oldest
        self.head = head
    }

    /// Parses the text of a ``ChangePage``, but not its records.
    ///
    /// - Parameters:
    ///   - frame: bytes that contain the text
    ///   - range: the range of the text in them
    /// - Throws: a description of the difference from ``ChangePage/table``
    public init(parsing frame: [UInt8], at range: Range<Int>) throws(JSONProblem) {
        var records: [[UInt8]]?
        var tokens: [String: String] = [:]
        do throws(JSONError) {
            try JSONCursor.read(frame) { (cursor) throws(JSONError) in
                try cursor.move(to: range.lowerBound)
                try cursor.enterObject()
                while let name = try cursor.nextMember() {
                    switch (name, try cursor.peek()) {
                    case ("records", UInt8(ascii: "[")):
                        try cursor.enterArray()
                        var found: [[UInt8]] = []
                        while try cursor.nextElement() { found.append(Array(frame[try cursor.skip()])) }
                        records = found
                    case ("token", UInt8(ascii: "\"")), ("oldest", UInt8(ascii: "\"")), ("head", UInt8(ascii: "\"")):
                        tokens[name] = try cursor.parseString()
                    default: try cursor.skip()
                    }
                }
            }
        } catch {
            throw JSONProblem("is not JSON: \(error)")
        }
        func token(_ name: String) throws(JSONProblem) -> ChangeToken {
            guard let token = tokens[name].flatMap(ChangeToken.init) else {
                throw JSONProblem("is not a token", path: [name])
            }
            return token
        }
        guard let records else { throw JSONProblem("is not a list", path: ["records"]) }
        self.init(records: records, token: try token("token"), oldest: try token("oldest"), head: try token("head"))
    }

    public var hasMore: Bool { token.sequence < head.sequence }

    /// The JSON text of the ``ChangePage``, in pieces.
    public var encoded: [[UInt8]] {
        Self.pieces(records, ending: "],\"token\":\"\(token)\",\"oldest\":\"\(oldest)\",\"head\":\"\(head)\"}")
    }

    /// Returns the JSON text of the params of `changes.records` and `feed.records`, without the request's `id`, in
    /// pieces.
    public static func notification(_ records: [[UInt8]], token: ChangeToken) -> [[UInt8]] {
        pieces(records, ending: "],\"token\":\"\(token)\"}")
    }

    private static func pieces(_ records: [[UInt8]], ending: String) -> [[UInt8]] {
        var pieces = [Array("{\"records\":[".utf8)]
        pieces.reserveCapacity(2 * records.count + 2)
        for (index, record) in records.enumerated() {
            if index > 0 { pieces.append(comma) }
            pieces.append(record)
        }
        pieces.append(Array(ending.utf8))
        return pieces
    }

    private static let comma = Array(",".utf8)
}
