public import JSONValue
public import PhotoModel

/// `fetch.keyAssets`: the covers of a collection, not its members (spec T-02, P-32).
public struct FetchKeyAssets: Request {
    public static let method = "fetch.keyAssets"
    public var collection: ObjectID
    public var atLeast: ChangeToken?

    /// The most covers of one collection.
    public static let maxCount = 3

    public init(collection: ObjectID, atLeast: ChangeToken? = nil) {
        self.collection = collection
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "At most three members that stand for a collection: the cover the user chose, then the first shown.",
        blank: FetchKeyAssets(collection: .none),
        [
            .required("collection", \.collection, .id(.assetCollection), "Whose covers."),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        public var token: ChangeToken
        /// `cover`: it says what these are not.
        public var purpose: String
        public var assets: [Asset]

        public init(token: ChangeToken, assets: [Asset]) {
            self.token = token
            self.purpose = "cover"
            self.assets = assets
        }

        public static let table = JSONTable(
            "KeyAssets",
            "Covers of a collection.",
            unknown: .ignored,
            blank: Result(token: .none, assets: []),
            [
                .required("token", \.token, .token, "The moment at which they were read."),
                .required("purpose", \.purpose, .text(maxBytes: 16), "cover: to count members ask fetch.counts."),
                .required("assets", \.assets, .list(of: .object(Asset.self), limit: maxCount), "At most three."),
            ]
        )
    }
}

/// `fetch.can`: what may be done to entities, `canPerformEditOperation:` (spec T-18).
public struct FetchCan: Request {
    public static let method = "fetch.can"
    public var ids: [ObjectID]

    public init(ids: [ObjectID]) { self.ids = ids }

    public static let table = parameters(
        "What may be done to assets, collections and lists.",
        blank: FetchCan(ids: []),
        [.required("ids", \.ids, .list(of: .id(), limit: FetchAssets.maxPage), "To which.")]
    )

    public struct Result: JSONTabled {
        public var token: ChangeToken
        /// Names of operations by identifier; what nothing has is left out.
        public var can: JSONObject

        public init(token: ChangeToken, can: JSONObject) {
            self.token = token
            self.can = can
        }

        public static let table = JSONTable(
            "Can",
            "What may be done.",
            unknown: .ignored,
            blank: Result(token: .none, can: [:]),
            [
                .required("token", \.token, .token, "The moment at which it was read."),
                .required(
                    "can",
                    \.can,
                    .members,
                    "For each identifier the names of the operations: of assets delete, content, properties; of "
                        + "collections and lists deleteContent, removeContent, addContent, createContent, "
                        + "rearrangeContent, delete, rename."
                ),
            ]
        )
    }
}

/// A fetch result as a value: a fetch and its moment (DESIGN 3.4).
public struct ResultReference: Sendable, Hashable, JSONTabled {
    public var fetch: FetchDescription
    public var token: ChangeToken?

    public init(fetch: FetchDescription, token: ChangeToken? = nil) {
        self.fetch = fetch
        self.token = token
    }

    public static let table = JSONTable(
        "FetchResult",
        "A fetch and its moment.",
        unknown: .refused,
        blank: ResultReference(fetch: FetchDescription(.assets)),
        [
            .required("fetch", \.fetch, .object(FetchDescription.self), "Which fetch."),
            .optional("token", \.token, .token, "Its moment; absent: now."),
        ]
    )
}

/// `transient.create`: a collection or list that is held for a while and never stored (spec S-30 to S-32).
public struct CreateTransient: Request {
    public static let method = "transient.create"
    /// Assets for a collection, collections and lists for a list.
    public var ids: [ObjectID]?
    /// Results put together, one after the other; what stands in several counts where it stands first.
    public var results: [ResultReference]
    public var title: String?

    public init(ids: [ObjectID]? = nil, results: [ResultReference] = [], title: String? = nil) {
        self.ids = ids
        self.results = results
        self.title = title
    }

    public static let table = parameters(
        "Holds a collection of assets, or a list of collections, for ten minutes after its last use; gone at a restart.",
        blank: CreateTransient(),
        [
            .optional("ids", \.ids, .list(of: .id(), limit: FetchDescription.maxIDs), "The members, in this order."),
            .defaulted(
                "results",
                \.results,
                .list(of: .object(ResultReference.self), limit: 16),
                "Or the members of fetch results, one after the other.",
                default: []
            ),
            .optional("title", \.title, .text(maxBytes: 1024), "Its name."),
        ]
    )

    public struct Result: JSONTabled {
        public var id: ObjectID
        /// Its members: exact.
        public var count: Int
        /// Milliseconds that it is held without use.
        public var leaseMs: Int

        public init(id: ObjectID, count: Int, leaseMs: Int) {
            self.id = id
            self.count = count
            self.leaseMs = leaseMs
        }

        public static let table = JSONTable(
            "Transient",
            "A collection or list that is held for a while.",
            unknown: .ignored,
            blank: Result(id: .none, count: 0, leaseMs: 0),
            [
                .required("id", \.id, .id(), "For \"in\" of fetches by this identity; then handle_expired."),
                .required("count", \.count, .count(0...Int.max), "Its members."),
                .required("leaseMs", \.leaseMs, .count(0...Int.max), "Milliseconds that it is held without use."),
            ]
        )
    }
}

/// `transient.release`: lets one go before its time.
public struct ReleaseTransient: Request {
    public static let method = "transient.release"
    public var id: ObjectID

    public init(id: ObjectID) { self.id = id }

    public static let table = parameters(
        "Lets a transient collection or list go; nothing where it is gone already.",
        blank: ReleaseTransient(id: .none),
        [.required("id", \.id, .id(), "Which.")]
    )

    public typealias Result = Done
}
