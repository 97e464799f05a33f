public import JSONValue
public import PhotoModel

/// `grants.status`: the permission of an identity; for services.
public struct GrantStatus: Request {
    public static let method = "grants.status"
    /// The identity, `key:NAME` or `uid:N`.
    public var identity: String
    /// Assets to check; the result names those that the identity does not see.
    public var assets: [ObjectID]
    /// True to receive the whole list of a limited grant.
    public var wantsList: Bool
    /// The token of a change that the result has to include. A token of another history is ignored.
    public var atLeast: ChangeToken?

    public init(
        identity: String,
        assets: [ObjectID] = [],
        wantsList: Bool = false,
        atLeast: ChangeToken? = nil
    ) {
        self.identity = identity
        self.assets = assets
        self.wantsList = wantsList
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The access of an identity, for services that have to check its requests.",
        blank: GrantStatus(identity: ""),
        [
            .required("identity", \.identity, .text(maxBytes: Grant.maxIdentityBytes), "The identity."),
            .defaulted(
                "assets",
                \.assets,
                .list(of: .id(.asset), limit: 1000),
                "Assets to check; the result names those that the identity does not see.",
                default: []
            ),
            .defaulted(
                "wantsList",
                \.wantsList,
                .flag,
                "True to receive the whole list of a limited grant.",
                default: false
            ),
            .optional(
                "atLeast",
                \.atLeast,
                .token,
                "The catalog answers once it has reached this token; else behind. One of another history is ignored."
            ),
        ]
    )

    /// The access of an identity.
    public struct Result: JSONTabled {
        /// The role.
        public var role: Permission.Role
        /// The changes that the owner is asked about.
        public var consent: ConsentPolicy
        /// The requested assets that the identity does not see, if it may see a list of assets only.
        public var hidden: [ObjectID] = []
        /// The public key of the identity; nil for one without a key.
        public var key: String?
        /// The list of a limited grant; nil unless it was requested.
        public var list: [ObjectID]?
        /// The token of ``list``.
        public var token: ChangeToken?

        public init(_ permission: Permission) {
            role = permission.role
            consent = permission.consent
        }

        /// The role and the consent.
        public var permission: Permission { Permission(role, consent: consent) }

        public static let table = JSONTable(
            "GrantStatus",
            "The access of an identity.",
            unknown: .ignored,
            blank: Result(Permission(.unknown)),
            [
                .required("role", \.role, .role, "The role."),
                .required(
                    "consent",
                    \.consent,
                    .name(ConsentPolicy.self),
                    "The changes that the owner is asked about."
                ),
                .defaulted(
                    "hidden",
                    \.hidden,
                    .list(of: .id(.asset), limit: 1000),
                    "The requested assets that the identity does not see.",
                    default: []
                ),
                .optional("key", \.key, .text(maxBytes: 40), "The public key of the identity."),
                .optional(
                    "list",
                    \.list,
                    .list(of: .id(.asset), limit: Grant.maxAssets),
                    "The list of a limited grant, if it was requested."
                ),
                .optional("token", \.token, .token, "The token of that list."),
            ]
        )
    }
}

extension JSONType where Value == Permission.Role {
    /// The type of a role, which is its name.
    fileprivate static var role: JSONType {
        let roles = Permission.Role.allCases
        return JSONType(
            schema: ["type": "string", "enum": JSON(roles.map { "\($0)" })],
            decode: { (json: JSON) throws(JSONProblem) in
                // A role that this service does not know, because the catalog is newer, allows nothing.
                roles.first { json == .string("\($0)") } ?? .denied
            },
            encode: { .string("\($0)") }
        )
    }
}
