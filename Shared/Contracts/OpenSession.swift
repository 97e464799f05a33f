public import JSONValue
public import PhotoModel

/// `session.open`: requests access to the library, PhotoKit's `requestAuthorization` (S-10).
public struct OpenSession: Request {
    public static let method = "session.open"
    /// Name of the client program.
    public var client: String
    /// The purpose of the access, which is shown to the owner. The request is refused without it (S-12).
    public var purpose: String
    /// The requested access.
    public var access: AccessLevel

    public init(client: String = "", purpose: String, access: AccessLevel = .readWrite) {
        self.client = client
        self.purpose = purpose
        self.access = access
    }

    public static let table = parameters(
        "Asks the owner of the library for access, for a stated purpose. If it is decided, the answer comes at once; "
            + "else the request waits for the decision until its deadline, and then answers notDetermined.",
        blank: OpenSession(purpose: ""),
        [
            .client(\.client),
            .defaulted(
                "purpose",
                \.purpose,
                .storableText(maxBytes: Grant.maxPurposeBytes),
                "The purpose of the access, for the owner to read. It is required: missing_purpose.",
                default: ""
            ),
            .defaulted(
                "access",
                \.access,
                .nameOrNumber(AccessLevel.self),
                "The requested access: PhotoKit's level, by name or number.",
                default: .readWrite
            ),
        ]
    )

    /// The access of an identity.
    public struct Result: JSONTabled {
        /// The identity of the connection.
        public var identity: String
        /// The decision of the owner.
        public var status: AuthorizationStatus
        /// The granted access, or the requested one if nothing is decided.
        public var access: AccessLevel
        /// The part of the library that the identity sees.
        public var scope: GrantScope
        /// The changes that the owner is asked about.
        public var consent: ConsentPolicy
        /// True for the owner of the library, who needs no grant.
        public var isOwner: Bool

        public init(_ grant: Grant, isOwner: Bool) {
            identity = grant.identity
            status = grant.status
            access = grant.access
            scope = grant.scope
            consent = grant.consent
            self.isOwner = isOwner
        }

        public static let table = JSONTable(
            "Session",
            "The access of an identity.",
            unknown: .ignored,
            blank: Result(Grant(identity: ""), isOwner: false),
            [
                .required("identity", \.identity, .text(maxBytes: 256), "The identity of the connection."),
                .required("status", \.status, .name(AuthorizationStatus.self), "The decision."),
                .derived("statusNumber", { $0.status.number }, .count(0...4), "PhotoKit's number of the status."),
                .required(
                    "access",
                    \.access,
                    .name(AccessLevel.self),
                    "The granted access, which may be less than the requested one."
                ),
                .derived("accessNumber", { $0.access.number }, .count(1...2), "PhotoKit's number of the access."),
                .required("scope", \.scope, .name(GrantScope.self), "The part of the library."),
                .required(
                    "consent",
                    \.consent,
                    .name(ConsentPolicy.self),
                    "The changes that the owner is asked about."
                ),
                .required("isOwner", \.isOwner, .flag, "True if the identity is the owner of the library."),
            ]
        )
    }
}
