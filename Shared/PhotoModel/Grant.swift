public import JSONValue

/// The decision of the library's owner about one identity, or the access request that waits for a decision.
///
/// An identity has at most one. A grant is an entity: each change of it is a transaction of the history.
public struct Grant: Sendable, Hashable, JSONTabled {
    /// The identity: `key:NAME` for a client with a key, `uid:N` for a user of this machine.
    public var identity: String
    /// The decision; `notDetermined` while the access request waits for it.
    public var status: AuthorizationStatus
    /// The granted access; without a decision, the requested one.
    public var access: AccessLevel
    /// The part of the library.
    public var scope: GrantScope
    /// The changes that the owner is asked about.
    public var consent: ConsentPolicy
    /// The purpose of the access, in the words of the client.
    public var purpose: String
    /// The name that the client gave itself.
    public var client: String
    /// The public key that the decision is about. It does not apply to another key that later has the same name. Nil
    /// for an identity without a key.
    public var key: String?
    /// The time at which it was requested or decided, in microseconds since 1970.
    public var date: Int64
    /// The identity that decided; nil without a decision.
    public var decidedBy: String?
    /// The number of assets on the list of a limited grant.
    public var assetCount = 0
    /// The assets that the transaction added to the list of a limited grant. They are part of the transaction's record,
    /// not of the stored grant.
    public var added: [ObjectID] = []
    /// The assets that the transaction removed from the list, as ``added``.
    public var removed: [ObjectID] = []

    public init(
        identity: String,
        status: AuthorizationStatus = .notDetermined,
        access: AccessLevel = .readWrite,
        scope: GrantScope = .all,
        consent: ConsentPolicy = .never,
        purpose: String = "",
        client: String = "",
        key: String? = nil,
        date: Int64 = 0,
        decidedBy: String? = nil
    ) {
        self.identity = identity
        self.status = status
        self.access = access
        self.scope = scope
        self.consent = consent
        self.purpose = purpose
        self.client = client
        self.key = key
        self.date = date
        self.decidedBy = decidedBy
    }

    /// The feed topic of records that change grants or contain questions about consent.
    public static let topic = "grants"
    /// The maximum length of ``identity``, in UTF-8 bytes.
    public static let maxIdentityBytes = 256
    /// The maximum length of ``purpose``, in UTF-8 bytes.
    public static let maxPurposeBytes = 1024
    /// The maximum number of assets on the list of a limited grant.
    public static let maxAssets = 100_000

    public static let table = JSONTable(
        "Grant",
        "A decision of the library's owner about an identity, or the access request that waits for it.",
        unknown: .ignored,
        blank: Grant(identity: ""),
        [
            .required("id", \.identity, .text(maxBytes: maxIdentityBytes), "The identity, key:NAME or uid:N."),
            .required("status", \.status, .name(AuthorizationStatus.self), "The decision."),
            .derived("statusNumber", { $0.status.number }, .count(0...4), "PhotoKit's number of the status."),
            .required("access", \.access, .name(AccessLevel.self), "The granted access, or the requested one."),
            .derived("accessNumber", { $0.access.number }, .count(1...2), "PhotoKit's number of the access."),
            .required("scope", \.scope, .name(GrantScope.self), "The part of the library that it is about."),
            .required(
                "consent",
                \.consent,
                .name(ConsentPolicy.self),
                "The transactions that the owner is asked about: none, destructive ones, or all."
            ),
            .required("purpose", \.purpose, .text(maxBytes: maxPurposeBytes), "The purpose of the access."),
            .defaulted("client", \.client, .text(maxBytes: 128), "The name that the client gave itself.", default: ""),
            .optional("key", \.key, .text(maxBytes: 40), "The public key that the decision is about."),
            .required("date", \.date, .date(), "When it was asked or decided."),
            .optional("decidedBy", \.decidedBy, .text(maxBytes: maxIdentityBytes), "The identity that decided."),
            .defaulted(
                "assetCount",
                \.assetCount,
                .count(0...maxAssets),
                "The number of assets on the list of a limited grant.",
                default: 0
            ),
            .defaulted(
                "added",
                \.added,
                .list(of: .id(.asset), limit: maxAssets),
                "The assets that this transaction put on the list of a limited grant.",
                default: []
            ),
            .defaulted(
                "removed",
                \.removed,
                .list(of: .id(.asset), limit: maxAssets),
                "The assets that this transaction took off the list of a limited grant.",
                default: []
            ),
        ]
    )
}
