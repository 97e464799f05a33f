public import JSONValue
public import PhotoModel

/// `grants.limit`: gives an identity access to a list of assets (T-41), or changes the list.
public struct LimitGrant: Request {
    /// The change of the list.
    public enum Action: String, Sendable, CaseIterable {
        /// The assets become the list, or are added to it, or removed from it.
        case set, add, remove
    }

    public static let method = "grants.limit"
    /// The identity, `key:NAME` or `uid:N`.
    public var identity: String
    /// The assets, at most ``Grant/maxAssets``.
    public var assets: [ObjectID]
    /// The change of the list.
    public var action: Action

    public init(identity: String, assets: [ObjectID], action: Action = .set) {
        self.identity = identity
        self.assets = assets
        self.action = action
    }

    public static let table = parameters(
        "Gives an identity access to a list of assets and nothing else, or changes its list. The client sees the "
            + "difference as inserted and removed assets, in its details and in changes.since and changes.follow. "
            + "Requests that run when access becomes limited end with access_denied.",
        blank: LimitGrant(identity: "", assets: []),
        [
            .required(
                "identity",
                \.identity,
                .text(maxBytes: Grant.maxIdentityBytes),
                "The identity, key:NAME or uid:N."
            ),
            .required("assets", \.assets, .list(of: .id(.asset), limit: Grant.maxAssets), "The assets."),
            .defaulted(
                "action",
                \.action,
                .name(Action.self),
                "set makes them the list; add and remove change the list of a grant that is limited already.",
                default: .set
            ),
        ]
    )

    public typealias Result = DecidedGrant
}
