public import JSONValue
import PhotoModel

/// `grants.revoke`: takes access away from an identity.
public struct RevokeGrant: Request {
    public static let method = "grants.revoke"
    /// The identity, `key:NAME` or `uid:N`.
    public var identity: String

    public init(identity: String) { self.identity = identity }

    public static let table = parameters(
        "Takes access away from an identity that has it. Its running requests end with access_denied within a second, "
            + "its streams end, and what the services keep for it is dropped.",
        blank: RevokeGrant(identity: ""),
        [.required("identity", \.identity, .text(maxBytes: Grant.maxIdentityBytes), "The identity, key:NAME or uid:N.")]
    )

    public typealias Result = DecidedGrant
}
