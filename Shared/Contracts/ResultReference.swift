public import JSONValue
public import PhotoModel

/// A fetch result as a value: a fetch and a token.
public struct ResultReference: Sendable, Hashable, JSONTabled {
    /// The fetch.
    public var fetch: FetchDescription
    /// Token of its result; nil: the newest.
    public var token: ChangeToken?

    public init(fetch: FetchDescription, token: ChangeToken? = nil) {
        self.fetch = fetch
        self.token = token
    }

    public static let table = JSONTable(
        "FetchResult",
        "A fetch and the token of its result.",
        unknown: .refused,
        blank: ResultReference(fetch: FetchDescription(.assets)),
        [
            .required("fetch", \.fetch, .fetch(), "The fetch."),
            .optional("token", \.token, .token, "Token of its result; absent: the newest."),
        ]
    )
}
