public import JSONValue
public import PhotoModel

/// `grants.approve`: gives an identity access, or consents to one transaction.
public struct ApproveGrant: Request {
    public static let method = "grants.approve"
    /// The identity; nil to answer a question about consent.
    public var identity: String?
    /// The question about consent; nil to decide about an identity.
    public var question: String?
    /// The access that is granted; nil for the requested one.
    public var access: AccessLevel?
    /// The part of the library; nil keeps what was decided before.
    public var scope: GrantScope?
    /// The changes that the owner is asked about; nil keeps what was decided before.
    public var consent: ConsentPolicy?
    /// The purpose, if it differs from the one that the client stated.
    public var purpose: String?

    public init(
        identity: String? = nil,
        question: String? = nil,
        access: AccessLevel? = nil,
        scope: GrantScope? = nil,
        consent: ConsentPolicy? = nil,
        purpose: String? = nil
    ) {
        self.identity = identity
        self.question = question
        self.access = access
        self.scope = scope
        self.consent = consent
        self.purpose = purpose
    }

    public static let table = parameters(
        "Gives an identity access, whether or not it has asked, or consents to one transaction that waits.",
        blank: ApproveGrant(),
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
            .optional(
                "access",
                \.access,
                .nameOrNumber(AccessLevel.self),
                "The granted access. Default: the requested one, else readWrite."
            ),
            .optional(
                "scope",
                \.scope,
                .name(GrantScope.self),
                "The part of the library: all, or limited to the list that grants.limit changes, which begins empty. "
                    + "Default: as before, else all."
            ),
            .optional(
                "consent",
                \.consent,
                .name(ConsentPolicy.self),
                "The transactions that the owner is asked about. Default: as before, else never."
            ),
            .optional(
                "purpose",
                \.purpose,
                .storableText(maxBytes: Grant.maxPurposeBytes),
                "The purpose. Default: the one that the client stated."
            ),
        ]
    )

    public typealias Result = DecidedGrant
}

/// The result of a decision of the owner.
public struct DecidedGrant: JSONTabled {
    /// The current grant; nil if a question was answered.
    public var grant: Grant?
    /// The answered question; nil if it was about an identity.
    public var question: ConsentQuestion?

    public init(grant: Grant? = nil, question: ConsentQuestion? = nil) {
        self.grant = grant
        self.question = question
    }

    public static let table = JSONTable(
        "DecidedGrant",
        "A decision of the owner of the library.",
        unknown: .ignored,
        blank: DecidedGrant(),
        [
            .optional("grant", \.grant, .object(Grant.self), "The grant as it is now."),
            .optional("question", \.question, .object(ConsentQuestion.self), "The question that was answered."),
        ]
    )
}
