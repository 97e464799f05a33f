public import Basics
public import JSONValue
public import PhotoModel

/// `changes.perform`: performs one transaction (S-71 to S-84).
public struct PerformChanges: Request {
    public static let method = "changes.perform"
    /// The changes, applied in order; each sees the results of those before it.
    public var requests: [ChangeRequest]
    /// Name of the client program.
    public var client: String
    /// Transaction id, chosen by the client; a repeated request with the same id has the same outcome. Nil: the write
    /// is not idempotent, which is meant for interactive use.
    public var transaction: String?
    /// For services: the client's identity.
    public var onBehalfOf: String?
    /// Digest of the client's original request, at most 64 bytes. It is compared instead of the parameters if the
    /// transaction is repeated, because a service's own parameters differ between attempts.
    public var requestDigest: String?
    /// True to return only the outcome of the committed transaction with this id, performing nothing. Without
    /// requests and digest the outcome is returned whatever the transaction was. The error is `identifier_not_found` if
    /// none was committed and `id_reused` if it had other requests or another digest. The library is not changed.
    public var recalls: Bool

    public init(
        requests: [ChangeRequest],
        client: String = "",
        transaction: String? = nil,
        onBehalfOf: String? = nil,
        requestDigest: String? = nil,
        recalls: Bool = false
    ) {
        self.requests = requests
        self.client = client
        self.transaction = transaction
        self.onBehalfOf = onBehalfOf
        self.requestDigest = requestDigest
        self.recalls = recalls
    }

    public static let table = parameters(
        "Performs one transaction: all of its requests or none, once for each transaction id.",
        blank: PerformChanges(requests: []),
        [
            .required(
                "requests",
                \.requests,
                .list(of: .changeRequest, limit: ChangeRecord.maxEntities),
                "The changes, applied in order; each sees the results of those before it."
            ),
            .client(\.client),
            .transaction(\.transaction),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "For services: the client's identity."),
            .optional(
                "requestDigest",
                \.requestDigest,
                .text(maxBytes: 64),
                "Digest of the request, compared instead of the parameters, which name other uploads if it is repeated."
            ),
            .defaulted(
                "recall",
                \.recalls,
                .flag,
                "Perform nothing; return the outcome of the transaction if it was committed. An empty list of requests "
                    + "recalls it whatever it was; other requests must be those that it had, with their attachments.",
                default: false
            ),
        ]
    )

    public init(params: JSON) throws(RPCError) {
        do throws(RPCError) {
            self = try Self.read(params)
        } catch {
            try Self.refuseNested(params)
            throw error
        }
    }

    /// Refuses a transaction inside a transaction (T-29), which the table only refuses as an unknown request.
    private static func refuseNested(_ params: JSON) throws(RPCError) {
        guard let index = params["requests"]?.arrayValue?.firstIndex(where: { $0["type"] == .string(method) }) else {
            return
        }
        throw ErrorCode.nestedChange.error(
            "a transaction cannot contain another; put all change requests into one list",
            ["request": JSON(index)]
        )
    }

    /// Members of a request that had no effect.
    public struct Ignored: JSONTabled, Hashable {
        /// Index of the request in the transaction.
        public var request: Int
        /// The request's placeholder; nil if it has none.
        public var ref: String?
        /// Names of the members.
        public var members: [String]

        public init(request: Int, ref: String? = nil, members: [String]) {
            self.request = request
            self.ref = ref
            self.members = members
        }

        public static let table = JSONTable(
            "Ignored",
            "Members of a request that had no effect.",
            unknown: .ignored,
            blank: Ignored(request: 0, members: []),
            [
                .required("request", \.request, .count(0...Int.max), "Index of the request."),
                .optional("ref", \.ref, .text(maxBytes: 64), "Its placeholder."),
                .required("members", \.members, .list(of: .text(maxBytes: 64), limit: 16), "Names of the members."),
            ]
        )
    }

    /// A new asset whose image the library had already, in a file with other metadata.
    public struct SameImage: JSONTabled, Hashable {
        /// Index of the request in the transaction.
        public var request: Int
        /// The request's placeholder; nil if it has none.
        public var ref: String?
        /// Assets with the same image, in the order of their import.
        public var assets: [ObjectID]

        /// The maximum number of assets that are listed.
        public static let maxAssets = 8

        public init(request: Int, ref: String? = nil, assets: [ObjectID]) {
            self.request = request
            self.ref = ref
            self.assets = assets
        }

        public static let table = JSONTable(
            "SameImage",
            "A new asset whose image the library had already, in a file with other metadata.",
            unknown: .ignored,
            blank: SameImage(request: 0, assets: []),
            [
                .required("request", \.request, .count(0...Int.max), "Index of the request."),
                .optional("ref", \.ref, .text(maxBytes: 64), "Its placeholder."),
                .required(
                    "assets",
                    \.assets,
                    .list(of: .id(.asset), limit: maxAssets),
                    "Assets with the same image."
                ),
            ]
        )
    }

    /// The outcome of a transaction.
    public struct Result: JSONTabled {
        /// Token of the transaction.
        public var token: ChangeToken
        /// Sequence of the transaction; the newest sequence if nothing changed.
        public var sequence: Int64
        /// True if anything changed; if not, no record was made.
        public var isChanged: Bool
        /// Identifiers of created entities by `ref`.
        public var placeholders: JSONObject
        /// The `ref`s whose bytes were already in the library (P-23).
        public var duplicates: [String]
        /// Assets that were recovered from the trash because their bytes were imported again.
        public var restored: [ObjectID]
        /// Members of requests for new assets that had no effect, because the library already had the bytes.
        public var ignored: [Ignored]
        /// New assets whose image the library had already, in a file with other metadata; empty for clients that do
        /// not see the whole library.
        public var sameImage: [SameImage]
        /// Digests of damaged stored files that were replaced with bytes of this request; empty in the response to a
        /// repeated request.
        public var healed: [String]

        public init(
            token: ChangeToken,
            isChanged: Bool,
            placeholders: JSONObject = [:],
            duplicates: [String] = [],
            restored: [ObjectID] = [],
            ignored: [Ignored] = [],
            sameImage: [SameImage] = [],
            healed: [String] = []
        ) {
            self.restored = restored
            self.ignored = ignored
            self.sameImage = sameImage
            self.healed = healed
            self.token = token
            self.sequence = token.sequence
            self.isChanged = isChanged
            self.placeholders = placeholders
            self.duplicates = duplicates
        }

        /// Returns the identifier of the entity created as `ref`; nil if there is none.
        public func id(_ ref: String) -> ObjectID? { placeholders[ref]?.stringValue.flatMap { ObjectID($0) } }

        /// The encoded result. The result of a transaction that only changes entities, which is the most frequent one,
        /// is written directly; a test compares it with that of the table.
        public var bytes: Bytes {
            guard placeholders.isEmpty, duplicates.isEmpty, restored.isEmpty, ignored.isEmpty, sameImage.isEmpty,
                healed.isEmpty
            else { return json.bytes }
            return JSONWriter.bytes(capacity: 128) { writer in
                writer.append("{\"token\":")
                writer.write(token.description)
                writer.append(",\"sequence\":")
                writer.write(sequence)
                writer.append(",\"isChanged\":")
                writer.write(isChanged)
                writer.append("}")
            }
        }

        public static let table = JSONTable(
            "Performed",
            "The outcome of a transaction.",
            unknown: .ignored,
            blank: Result(token: .none, isChanged: false),
            [
                .required("token", \.token, .token, "Token of the transaction."),
                .required("sequence", \.sequence, .integer(0...Int64.max), "Sequence of the transaction."),
                .required("isChanged", \.isChanged, .flag, "True if anything changed."),
                .defaulted("placeholders", \.placeholders, .members, "Identifiers by ref.", default: [:]),
                .defaulted(
                    "duplicates",
                    \.duplicates,
                    .list(of: .text(maxBytes: 64), limit: 1000),
                    "The refs whose bytes were already in the library.",
                    default: []
                ),
                .defaulted(
                    "restored",
                    \.restored,
                    .list(of: .id(.asset), limit: 1000),
                    "Assets taken out of the trash because their bytes were imported again.",
                    default: []
                ),
                .defaulted(
                    "ignored",
                    \.ignored,
                    .list(of: .object(Ignored.self), limit: 1000),
                    "Members of asset.create without effect, because the library already had the bytes.",
                    default: []
                ),
                .defaulted(
                    "sameImage",
                    \.sameImage,
                    .list(of: .object(SameImage.self), limit: 1000),
                    "New assets whose image the library had already, in a file with other metadata.",
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
