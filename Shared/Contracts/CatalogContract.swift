public import JSONValue
public import Messaging
public import PhotoModel

/// `fetch.assets`: a page of a fetch result (spec S-14 to S-29; DESIGN 3.4).
public struct FetchAssets: Request {
    public static let method = "fetch.assets"
    public var fetch: FetchDescription
    /// The moment of the result; nil: now.
    public var token: ChangeToken?
    /// Position of the first object of the page.
    public var from: Int
    public var count: Int
    public var atLeast: ChangeToken?

    public static let maxPage = 1000

    public init(
        fetch: FetchDescription,
        token: ChangeToken? = nil,
        from: Int = 0,
        count: Int = 100,
        atLeast: ChangeToken? = nil
    ) {
        self.fetch = fetch
        self.token = token
        self.from = from
        self.count = count
        self.atLeast = atLeast
    }

    public static let table = JSONTable(
        method,
        "A page of the assets that a fetch gives.",
        unknown: .refused,
        blank: FetchAssets(fetch: FetchDescription(.assets)),
        [
            .defaulted(
                "fetch",
                \.fetch,
                .object(FetchDescription.self),
                "Which assets in which order.",
                default: FetchDescription(.assets)
            ),
            .optional("token", \.token, .token, "The moment of the result, as its first page said; absent: now."),
            .defaulted("from", \.from, .count(0...Int.max), "Position of the first object of the page.", default: 0),
            .defaulted("count", \.count, .count(0...maxPage), "Objects of the page.", default: 100),
            .optional("atLeast", \.atLeast, .token, "Answer at this moment or a later one."),
        ]
    )

    public struct Result: JSONTabled {
        public var token: ChangeToken
        public var sequence: Int64
        /// Objects of the whole result, after offset and limit.
        public var count: Int
        public var assets: [Asset]
        /// Identifiers asked for that no asset has (spec T-01).
        public var missing: [ObjectID]

        public init(token: ChangeToken, count: Int, assets: [Asset], missing: [ObjectID] = []) {
            self.token = token
            self.sequence = token.sequence
            self.count = count
            self.assets = assets
            self.missing = missing
        }

        public static let table = JSONTable(
            "AssetPage",
            "A page of assets.",
            unknown: .ignored,
            blank: Result(token: .none, count: 0, assets: []),
            [
                .required("token", \.token, .token, "The moment of the result."),
                .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction at which it was read."),
                .required("count", \.count, .count(0...Int.max), "Objects of the whole result."),
                .required("assets", \.assets, .list(of: .object(Asset.self), limit: maxPage), "The page."),
                .defaulted(
                    "missing",
                    \.missing,
                    .list(of: .id(), limit: 10_000),
                    "Identifiers that no asset has.",
                    default: []
                ),
            ]
        )
    }
}

/// `fetch.collections`: albums and folders (spec S-18, S-19).
public struct FetchCollections: Request {
    public static let method = "fetch.collections"
    public var fetch: FetchDescription
    public var from: Int
    public var count: Int
    public var atLeast: ChangeToken?

    public init(fetch: FetchDescription, from: Int = 0, count: Int = 100, atLeast: ChangeToken? = nil) {
        self.fetch = fetch
        self.from = from
        self.count = count
        self.atLeast = atLeast
    }

    public static let table = JSONTable(
        method,
        "A page of the collections that a fetch gives.",
        unknown: .refused,
        blank: FetchCollections(fetch: FetchDescription(.collections)),
        [
            .defaulted(
                "fetch",
                \.fetch,
                .object(FetchDescription.self),
                "Which collections in which order.",
                default: FetchDescription(.collections)
            ),
            .defaulted("from", \.from, .count(0...Int.max), "Position of the first object of the page.", default: 0),
            .defaulted("count", \.count, .count(0...FetchAssets.maxPage), "Objects of the page.", default: 100),
            .optional("atLeast", \.atLeast, .token, "Answer at this moment or a later one."),
        ]
    )

    public struct Result: JSONTabled {
        public var token: ChangeToken
        public var sequence: Int64
        public var count: Int
        public var collections: [AssetCollection]

        public init(token: ChangeToken, count: Int, collections: [AssetCollection]) {
            self.token = token
            self.sequence = token.sequence
            self.count = count
            self.collections = collections
        }

        public static let table = JSONTable(
            "CollectionPage",
            "A page of collections.",
            unknown: .ignored,
            blank: Result(token: .none, count: 0, collections: []),
            [
                .required("token", \.token, .token, "The moment of the result."),
                .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction at which it was read."),
                .required("count", \.count, .count(0...Int.max), "Objects of the whole result."),
                .required(
                    "collections",
                    \.collections,
                    .list(of: .object(AssetCollection.self), limit: FetchAssets.maxPage),
                    "The page."
                ),
            ]
        )
    }
}

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

    public static let table = JSONTable(
        method,
        "One transaction: all of its requests or none, once for each transaction id.",
        unknown: .refused,
        blank: PerformChanges(requests: []),
        [
            .required(
                "requests",
                \.requests,
                .list(of: .changeRequest, limit: ChangeRecord.maxEntities),
                "Applied in this order; later ones see earlier ones."
            ),
            .defaulted("client", \.client, .text(maxBytes: 128), "The name the client gives itself.", default: ""),
            .optional("transaction", \.transaction, .text(maxBytes: 128), "The client's name for the transaction."),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "For services: the client they act for."),
            .optional(
                "requestDigest", \.requestDigest, .text(maxBytes: 64),
                "For services: digest of what the client asked for, compared instead of the parameters."),
            .defaulted(
                "recall", \.recall, .flag, "Performs nothing, answers the outcome of the transaction if it was committed.",
                default: false),
        ]
    )

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

        public init(
            token: ChangeToken,
            isChanged: Bool,
            placeholders: JSONObject = [:],
            duplicates: [String] = []
        ) {
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
            ]
        )
    }
}

/// `changes.token`: the library's present moment (spec T-35).
public struct CurrentToken: Request {
    public static let method = "changes.token"
    public init() {}
    public static let table = JSONTable(
        method,
        "The library's present moment.",
        unknown: .refused,
        blank: CurrentToken(),
        []
    )

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

/// `resource.read`: the bytes of a resource (spec T-31, T-32).
///
/// To a REQ client, or without credit: one reply with up to 8 MiB from `offset` as its attachment. With credit:
/// notifications `resource.chunk {offset}` with an attachment each, then the reply.
public struct ReadResource: Request {
    public static let method = "resource.read"
    public static let notification = "resource.chunk"
    public static let maxReplyBytes = 8 << 20
    public static let chunkBytes = 1 << 20
    public var asset: ObjectID
    public var type: ResourceType
    public var offset: Int64
    public var length: Int64?

    public init(asset: ObjectID, type: ResourceType, offset: Int64 = 0, length: Int64? = nil) {
        self.asset = asset
        self.type = type
        self.offset = offset
        self.length = length
    }

    public static let table = JSONTable(
        method,
        "The bytes of a resource, whole or in part.",
        unknown: .refused,
        blank: ReadResource(asset: .none, type: .photo),
        [
            .required("asset", \.asset, .id(.asset), "The asset."),
            .defaulted("type", \.type, .name(ResourceType.self), "Which of its resources.", default: .photo),
            .defaulted("offset", \.offset, .integer(0...Int64.max), "First byte.", default: 0),
            .optional("length", \.length, .integer(0...Int64.max), "Bytes; absent: to the end."),
        ]
    )

    public struct Result: JSONTabled {
        public var resource: AssetResource
        public var offset: Int64
        /// Bytes delivered from `offset` on.
        public var length: Int64

        public init(resource: AssetResource, offset: Int64, length: Int64) {
            self.resource = resource
            self.offset = offset
            self.length = length
        }

        public static let table = JSONTable(
            "ResourceBytes",
            "What was delivered.",
            unknown: .ignored,
            blank: Result(
                resource: AssetResource(type: .photo, digest: "", size: 0, contentType: ""),
                offset: 0,
                length: 0
            ),
            [
                .required("resource", \.resource, .object(AssetResource.self), "The resource, with its digest."),
                .required("offset", \.offset, .integer(0...Int64.max), "First byte delivered."),
                .required("length", \.length, .integer(0...Int64.max), "Bytes delivered."),
            ]
        )
    }
}

/// `upload.begin`: bytes larger than an attachment come in steps.
public struct BeginUpload: Request {
    public static let method = "upload.begin"
    /// The size, where it is known; a larger one than the quota is refused at once.
    public var size: Int64?

    public static let chunkBytes = 1 << 20

    public init(size: Int64? = nil) { self.size = size }

    public static let table = JSONTable(
        method,
        "Begins an upload; its lease is ten minutes, renewed by each append.",
        unknown: .refused,
        blank: BeginUpload(),
        [.optional("size", \.size, .integer(0...Int64.max), "The size of the whole, where it is known.")]
    )

    public struct Result: JSONTabled {
        public var upload: String
        public var chunkBytes: Int

        public init(upload: String, chunkBytes: Int = BeginUpload.chunkBytes) {
            self.upload = upload
            self.chunkBytes = chunkBytes
        }

        public static let table = JSONTable(
            "Upload",
            "An open upload.",
            unknown: .ignored,
            blank: Result(upload: ""),
            [
                .required("upload", \.upload, .text(maxBytes: 64), "Its name."),
                .required("chunkBytes", \.chunkBytes, .count(1...BeginUpload.chunkBytes), "Most bytes of an append."),
            ]
        )
    }
}

/// `upload.append`: the next bytes, as the one attachment.
public struct AppendUpload: Request {
    public static let method = "upload.append"
    public var upload: String
    /// Where these bytes belong: an append that was received already is answered again, a gap is refused.
    public var offset: Int64

    public init(upload: String, offset: Int64) {
        self.upload = upload
        self.offset = offset
    }

    public static let table = JSONTable(
        method,
        "Appends the attachment to an upload.",
        unknown: .refused,
        blank: AppendUpload(upload: "", offset: 0),
        [
            .required("upload", \.upload, .text(maxBytes: 64), "The upload."),
            .required("offset", \.offset, .integer(0...Int64.max), "Where these bytes belong."),
        ]
    )

    public struct Result: JSONTabled {
        public var size: Int64
        public init(size: Int64) { self.size = size }
        public static let table = JSONTable(
            "UploadSize",
            "Bytes received so far.",
            unknown: .ignored,
            blank: Result(size: 0),
            [.required("size", \.size, .integer(0...Int64.max), "Bytes received so far.")]
        )
    }
}

/// `upload.finish`: the bytes are complete and durable.
public struct FinishUpload: Request {
    public static let method = "upload.finish"
    public var upload: String
    /// SHA-256 that the bytes must have, where the client knows it.
    public var digest: String?

    public init(upload: String, digest: String? = nil) {
        self.upload = upload
        self.digest = digest
    }

    public static let table = JSONTable(
        method,
        "Completes an upload, so that a change request may name it.",
        unknown: .refused,
        blank: FinishUpload(upload: ""),
        [
            .required("upload", \.upload, .text(maxBytes: 64), "The upload."),
            .optional("digest", \.digest, .text(maxBytes: 64), "SHA-256 that the bytes must have."),
        ]
    )

    public struct Result: JSONTabled {
        public var upload: String
        public var digest: String
        public var size: Int64

        public init(upload: String, digest: String, size: Int64) {
            self.upload = upload
            self.digest = digest
            self.size = size
        }

        public static let table = JSONTable(
            "FinishedUpload",
            "A complete upload.",
            unknown: .ignored,
            blank: Result(upload: "", digest: "", size: 0),
            [
                .required("upload", \.upload, .text(maxBytes: 64), "Its name."),
                .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes."),
                .required("size", \.size, .integer(0...Int64.max), "Bytes."),
            ]
        )
    }
}

/// `upload.cancel`: forgets an upload.
public struct CancelUpload: Request {
    public typealias Result = Done
    public static let method = "upload.cancel"
    public var upload: String
    public init(upload: String) { self.upload = upload }
    public static let table = JSONTable(
        method,
        "Forgets an upload.",
        unknown: .refused,
        blank: CancelUpload(upload: ""),
        [.required("upload", \.upload, .text(maxBytes: 64), "The upload.")]
    )
}

/// Every request of the catalog.
public enum CatalogRequest: Sendable {
    case fetchAssets(FetchAssets)
    case fetchCollections(FetchCollections)
    case perform(PerformChanges)
    case since(ChangesSince)
    case follow(ChangesFollow)
    case token(CurrentToken)
    case readResource(ReadResource)
    case beginUpload(BeginUpload)
    case appendUpload(AppendUpload)
    case finishUpload(FinishUpload)
    case cancelUpload(CancelUpload)
    case discover(Discover)
    case health(Health)
    case figures(Figures)

    public static let methods: [MethodDescription] = [
        MethodDescription(FetchAssets.self), MethodDescription(FetchCollections.self),
        MethodDescription(PerformChanges.self, attachments: "Bytes of resources and adjustment data, as numbered."),
        MethodDescription(ChangesSince.self), MethodDescription(ChangesFollow.self),
        MethodDescription(CurrentToken.self),
        MethodDescription(ReadResource.self, attachments: "Reply or notifications: the bytes."),
        MethodDescription(BeginUpload.self), MethodDescription(AppendUpload.self, attachments: "The next bytes."),
        MethodDescription(FinishUpload.self), MethodDescription(CancelUpload.self),
        MethodDescription(Discover.self), MethodDescription(Health.self), MethodDescription(Figures.self),
    ]

    public init(method: String, params: JSON) throws(RPCError) {
        switch method {
        case FetchAssets.method: self = .fetchAssets(try FetchAssets(params: params))
        case FetchCollections.method: self = .fetchCollections(try FetchCollections(params: params))
        case PerformChanges.method: self = .perform(try PerformChanges(params: params))
        case ChangesSince.method: self = .since(try ChangesSince(params: params))
        case ChangesFollow.method: self = .follow(try ChangesFollow(params: params))
        case CurrentToken.method: self = .token(try CurrentToken(params: params))
        case ReadResource.method: self = .readResource(try ReadResource(params: params))
        case BeginUpload.method: self = .beginUpload(try BeginUpload(params: params))
        case AppendUpload.method: self = .appendUpload(try AppendUpload(params: params))
        case FinishUpload.method: self = .finishUpload(try FinishUpload(params: params))
        case CancelUpload.method: self = .cancelUpload(try CancelUpload(params: params))
        case Discover.method: self = .discover(try Discover(params: params))
        case Health.method: self = .health(try Health(params: params))
        case Figures.method: self = .figures(try Figures(params: params))
        default: throw unknownMethod(method, Self.methods)
        }
    }
}

/// The answer to a method that the service does not have.
func unknownMethod(_ method: String, _ methods: [MethodDescription]) -> RPCError {
    Refusal.methodNotFound.error(
        "there is no method \(method.prefix(64)); rpc.discover describes those there are",
        ["methods": JSON(methods.map(\.name))]
    )
}

extension JSONType where Value == JSONObject {
    /// An object with members of any name.
    static var members: JSONType {
        JSONType(
            schema: ["type": "object"],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let object = json.objectValue else { throw JSONProblem("expected an object") }
                return object
            },
            encode: { .object($0) }
        )
    }
}
