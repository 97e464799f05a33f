public import JSONValue
public import PhotoModel

/// `grants.status`: what an identity may do, for the services.
public struct GrantStatus: Request {
    public static let method = "grants.status"
    public var identity: String
    /// Assets about which it is asked whether the identity sees them.
    public var assets: [ObjectID]

    public init(identity: String, assets: [ObjectID] = []) {
        self.identity = identity
        self.assets = assets
    }

    public static let table = parameters(
        "What an identity may do, for services that have to check its requests.",
        blank: GrantStatus(identity: ""),
        [
            .required("identity", \.identity, .text(maxBytes: Grant.maxIdentityBytes), "The identity."),
            .defaulted(
                "assets",
                \.assets,
                .list(of: .id(.asset), limit: 1000),
                "Assets about which it is asked whether the identity sees them.",
                default: []
            ),
        ]
    )

    public struct Result: JSONTabled {
        public var role: Permission.Role
        public var consent: ConsentPolicy
        /// The requested assets that the identity does not see, if it may see a list of assets only.
        public var hidden: [ObjectID] = []

        public init(_ permission: Permission) {
            role = permission.role
            consent = permission.consent
        }

        public var permission: Permission { Permission(role, consent: consent) }

        public static let table = JSONTable(
            "GrantStatus",
            "What an identity may do.",
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
            ]
        )
    }
}

extension JSONType where Value == Permission.Role {
    /// The name of a role.
    fileprivate static var role: JSONType {
        let roles = Permission.Role.allCases
        return JSONType(
            schema: ["type": "string", "enum": JSON(roles.map { "\($0)" })],
            decode: { (json: JSON) throws(JSONProblem) in
                // A role of a newer catalog opens nothing.
                roles.first { json == .string("\($0)") } ?? .denied
            },
            encode: { .string("\($0)") }
        )
    }
}
