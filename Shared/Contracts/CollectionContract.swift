public import JSONValue
public import PhotoModel

/// `fetch.keyAssets`: the cover assets of a collection, which are not all of its members (T-02, P-32).
public struct FetchKeyAssets: Request {
    public static let method = "fetch.keyAssets"
    /// The collection.
    public var collection: ObjectID
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    /// The maximum number of covers of a collection.
    public static let maxCount = 3

    public init(collection: ObjectID, atLeast: ChangeToken? = nil) {
        self.collection = collection
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Returns at most three cover assets of a collection: the one the user chose, then the first members.",
        blank: FetchKeyAssets(collection: .none),
        [
            .required("collection", \.collection, .id(.assetCollection), "The collection."),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        /// Token at which they were read.
        public var token: ChangeToken
        /// Always `cover`, as a reminder that the assets are not all members.
        public var purpose: String
        /// At most three covers.
        public var assets: [Asset]

        public init(token: ChangeToken, assets: [Asset]) {
            self.token = token
            self.purpose = "cover"
            self.assets = assets
        }

        public static let table = JSONTable(
            "KeyAssets",
            "Cover assets of a collection.",
            unknown: .ignored,
            blank: Result(token: .none, assets: []),
            [
                .required("token", \.token, .token, "Token at which they were read."),
                .required("purpose", \.purpose, .text(maxBytes: 16), "Always cover; fetch.counts counts members."),
                .required("assets", \.assets, .list(of: .object(Asset.self), limit: maxCount), "At most three covers."),
            ]
        )
    }
}

/// `fetch.can`: the operations allowed on entities, `canPerformEditOperation:` (T-18).
public struct FetchCan: Request {
    public static let method = "fetch.can"
    /// The entities.
    public var ids: [ObjectID]

    public init(ids: [ObjectID]) { self.ids = ids }

    public static let table = parameters(
        "The operations allowed on assets, collections and lists.",
        blank: FetchCan(ids: []),
        [.required("ids", \.ids, .list(of: .id(), limit: FetchAssets.maxPage), "The entities.")]
    )

    public struct Result: JSONTabled {
        /// Token at which they were read.
        public var token: ChangeToken
        /// Names of operations by identifier; identifiers without an entity are omitted.
        public var can: JSONObject

        public init(token: ChangeToken, can: JSONObject) {
            self.token = token
            self.can = can
        }

        public static let table = JSONTable(
            "Can",
            "Allowed operations.",
            unknown: .ignored,
            blank: Result(token: .none, can: [:]),
            [
                .required("token", \.token, .token, "Token at which they were read."),
                .required(
                    "can",
                    \.can,
                    .members,
                    "Names of the allowed operations by identifier. For assets: delete, content, properties; for "
                        + "collections and lists: deleteContent, removeContent, addContent, createContent, "
                        + "rearrangeContent, delete, rename."
                ),
            ]
        )
    }
}

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
            .required("fetch", \.fetch, .object(FetchDescription.self), "The fetch."),
            .optional("token", \.token, .token, "Token of its result; absent: the newest."),
        ]
    )
}

/// `transient.create`: creates a transient collection or list, which is leased and never stored (S-30 to S-32).
public struct CreateTransient: Request {
    public static let method = "transient.create"
    /// The members: assets for a collection, collections and lists for a list; nil if ``results`` is used.
    public var ids: [ObjectID]?
    /// Results whose members are concatenated; duplicates keep their first position.
    public var results: [ResultReference]
    /// Its title.
    public var title: String?

    public init(ids: [ObjectID]? = nil, results: [ResultReference] = [], title: String? = nil) {
        self.ids = ids
        self.results = results
        self.title = title
    }

    public static let table = parameters(
        "Creates a transient collection or list, which is kept until ten minutes after its last use or a restart.",
        blank: CreateTransient(),
        [
            .optional("ids", \.ids, .list(of: .id(), limit: FetchDescription.maxIDs), "The members, in order."),
            .defaulted(
                "results",
                \.results,
                .list(of: .object(ResultReference.self), limit: 16),
                "Instead of ids: fetch results whose members are concatenated.",
                default: []
            ),
            .optional("title", \.title, .text(maxBytes: 1024), "Its title."),
        ]
    )

    public struct Result: JSONTabled {
        /// Its id, for "in" of this identity's fetches until handle_expired.
        public var id: ObjectID
        /// Exact number of its members.
        public var count: Int
        /// Lease in milliseconds, renewed by each use.
        public var leaseMs: Int

        public init(id: ObjectID, count: Int, leaseMs: Int) {
            self.id = id
            self.count = count
            self.leaseMs = leaseMs
        }

        public static let table = JSONTable(
            "Transient",
            "A transient collection or list.",
            unknown: .ignored,
            blank: Result(id: .none, count: 0, leaseMs: 0),
            [
                .required("id", \.id, .id(), "Its id, for \"in\" of this identity's fetches until handle_expired."),
                .required("count", \.count, .count(0...Int.max), "Number of its members."),
                .required("leaseMs", \.leaseMs, .count(0...Int.max), "Lease in milliseconds, renewed by each use."),
            ]
        )
    }
}

/// `transient.release`: ends the lease of a transient collection or list.
public struct ReleaseTransient: Request {
    public static let method = "transient.release"
    /// Id from transient.create.
    public var id: ObjectID

    public init(id: ObjectID) { self.id = id }

    public static let table = parameters(
        "Releases a transient collection or list; succeeds if it has already expired.",
        blank: ReleaseTransient(id: .none),
        [.required("id", \.id, .id(), "Id from transient.create.")]
    )

    public typealias Result = EmptyResult
}
