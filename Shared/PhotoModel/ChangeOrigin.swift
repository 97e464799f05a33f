public import JSONValue

/// The author of a change. Observers use it to recognize their own changes (D6).
public struct ChangeOrigin: Sendable, Hashable, JSONTabled {
    /// The identity of the connection: `uid:1000`, the name of a key, or `clock` for changes made by the passing of
    /// time.
    public var identity: String
    /// The name that the client gave itself.
    public var client: String?
    /// The transaction id that the client chose.
    public var transaction: String?
    /// The client on whose behalf a service acted.
    public var onBehalfOf: String?

    public init(identity: String, client: String? = nil, transaction: String? = nil, onBehalfOf: String? = nil) {
        self.identity = identity
        self.client = client
        self.transaction = transaction
        self.onBehalfOf = onBehalfOf
    }

    public static let table = JSONTable(
        "ChangeOrigin",
        "The author of a change.",
        unknown: .ignored,
        blank: ChangeOrigin(identity: ""),
        [
            .required("identity", \.identity, .text(maxBytes: 256), "Identity of the connection, or \"clock\"."),
            .optional("client", \.client, .text(maxBytes: 128), "The name the client gave itself."),
            .optional("transaction", \.transaction, .text(maxBytes: 128), "The client's name for the transaction."),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "The client on whose behalf a service acted."),
        ]
    )
}
