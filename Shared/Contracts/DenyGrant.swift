public import JSONValue
import PhotoModel

/// `grants.deny`: refuses an identity access, or declines one transaction.
public struct DenyGrant: Request {
    public static let method = "grants.deny"
    /// The identity; nil to answer a question about consent.
    public var identity: String?
    /// The question about consent; nil to decide about an identity.
    public var question: String?

    public init(identity: String? = nil, question: String? = nil) {
        self.identity = identity
        self.question = question
    }

    public static let table = parameters(
        "Refuses an identity access, whether or not it has asked, or declines one transaction that waits: it ends with "
            + "user_cancelled.",
        blank: DenyGrant(),
        [
            .optional(
                "identity",
                \.identity,
                .text(maxBytes: Grant.maxIdentityBytes),
                "The identity, key:NAME or uid:N."
            ),
            .optional(
                "question",
                \.question,
                .text(maxBytes: 64),
                "Instead of an identity: the question about consent."
            ),
        ]
    )

    public typealias Result = DecidedGrant
}
