public import JSONValue
public import Messaging
public import PhotoModel

/// `changes.perform`: one transaction (spec S-71 to S-84 and section 10).
public struct PerformChanges: Request {
    public static let method = "changes.perform"
    public var requests: [ChangeRequest]
    /// The name the client gives itself.
    public var client: String
    /// The client's name for the transaction: the same name again gives the same outcome. Absent: the write is not
    /// idempotent, which is for typing by hand.
    public var transaction: String?
    public var onBehalfOf: String?
    /// Digest of what the client asked for, at most 64 bytes: compared instead of the parameters where the transaction
    /// comes again, because a service's own parameters differ from one attempt to the next.
    public var requestDigest: String?
    /// Performs nothing: answers the outcome of the transaction of this name, `identifier_not_found` where none was
    /// committed, and `id_reused` where it was one of another digest. Nothing is remembered of the question.
    public var recall: Bool

    public init(
        requests: [ChangeRequest],
        client: String = "",
        transaction: String? = nil,
        onBehalfOf: String? = nil,
        requestDigest: String? = nil,
        recall: Bool = false
    ) {
        self.requests = requests
        self.client = client
        self.transaction = transaction
        self.onBehalfOf = onBehalfOf
        self.requestDigest = requestDigest
        self.recall = recall
    }

    public static let table = parameters(
        "One transaction: all of its requests or none, once for each transaction id.",
        blank: PerformChanges(requests: []),
        [
            .required(
                "requests",
                \.requests,
                .list(of: .changeRequest, limit: ChangeRecord.maxEntities),
                "Applied in this order; later ones see earlier ones."
            ),
            .client(\.client),
            .transaction(\.transaction),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "For services: the client they act for."),
            .optional(
                "requestDigest",
                \.requestDigest,
                .text(maxBytes: 64),
                "For services: digest of what the client asked for, compared instead of the parameters."
            ),
            .defaulted(
                "recall",
                \.recall,
                .flag,
                "Performs nothing, answers the outcome of the transaction if it was committed.",
                default: false
            ),
        ]
    )

    public init(params: JSON) throws(RPCError) {
        try Self.refuseNested(params)
        self = try Self.read(params)
    }

    /// A transaction inside a transaction (spec T-29).
    private static func refuseNested(_ params: JSON) throws(RPCError) {
        guard let index = params["requests"]?.arrayValue?.firstIndex(where: { $0["type"] == .string(method) }) else {
            return
        }
        throw Refusal.nestedChange.error(
            "a transaction holds no other; put its requests into the one list",
            ["request": JSON(index)]
        )
    }

    public struct Result: JSONTabled {
        public var token: ChangeToken
        /// The transaction's sequence; where nothing changed, the newest one.
        public var sequence: Int64
        /// False where the requests changed nothing, and so made no record.
        public var isChanged: Bool
        /// The identifier for each `ref`.
        public var placeholders: JSONObject
        /// Those `ref`s whose bytes were in the library already (spec P-23).
        public var duplicates: [String]
        /// Digests of stored files that were damaged, and that the bytes of this request replaced. A repeated request
        /// does not name them again.
        public var healed: [String]

        public init(
            token: ChangeToken,
            isChanged: Bool,
            placeholders: JSONObject = [:],
            duplicates: [String] = [],
            healed: [String] = []
        ) {
            self.healed = healed
            self.token = token
            self.sequence = token.sequence
            self.isChanged = isChanged
            self.placeholders = placeholders
            self.duplicates = duplicates
        }

        /// The identifier that a placeholder stands for.
        public func id(_ ref: String) -> ObjectID? { placeholders[ref]?.stringValue.flatMap { ObjectID($0) } }

        public static let table = JSONTable(
            "Performed",
            "The outcome of a transaction.",
            unknown: .ignored,
            blank: Result(token: .none, isChanged: false),
            [
                .required("token", \.token, .token, "The moment after the transaction."),
                .required("sequence", \.sequence, .integer(0...Int64.max), "Its sequence."),
                .required("isChanged", \.isChanged, .flag, "False where there was nothing to change."),
                .defaulted("placeholders", \.placeholders, .members, "The identifier for each ref.", default: [:]),
                .defaulted(
                    "duplicates",
                    \.duplicates,
                    .list(of: .text(maxBytes: 64), limit: 1000),
                    "Those refs whose bytes were in the library already.",
                    default: []
                ),
                .defaulted(
                    "healed",
                    \.healed,
                    .list(of: .text(maxBytes: 64), limit: 1000),
                    "Digests of damaged stored files that these bytes replaced.",
                    default: []
                ),
            ]
        )
    }
}

/// `changes.token`: the library's present moment (spec T-35).
public struct CurrentToken: Request {
    public static let method = "changes.token"
    public init() {}
    public static let table = parameters("The library's present moment.", blank: CurrentToken())

    public struct Result: JSONTabled {
        public var token: ChangeToken
        public var oldest: ChangeToken

        public init(token: ChangeToken, oldest: ChangeToken) {
            self.token = token
            self.oldest = oldest
        }

        public static let table = JSONTable(
            "CurrentToken",
            "The library's present moment.",
            unknown: .ignored,
            blank: Result(token: .none, oldest: .none),
            [
                .required("token", \.token, .token, "The newest token."),
                .required("oldest", \.oldest, .token, "The oldest token from which history is complete."),
            ]
        )
    }
}
