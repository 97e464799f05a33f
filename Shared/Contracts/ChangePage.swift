public import JSONValue
public import PhotoModel

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
