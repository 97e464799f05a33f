public import JSONValue
public import PhotoModel

/// `transient.create`: creates a transient collection or list, which is leased and never stored (S-30 to S-32).
public struct CreateTransient: Request {
    public static let method = "transient.create"
    /// The members: assets for a collection, collections and lists, also transient ones, for a list; nil if ``results``
    /// is used.
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
            .optional(
                "title",
                \.title,
                .text(maxBytes: TextLimit.title),
                "Its title, which fetches of it by its id and of the children of a transient list return."
            ),
        ]
    )

    /// A transient collection or list.
    public struct Result: JSONTabled {
        /// Its id, for "in" of this identity's fetches until handle_expired.
        public var id: ObjectID
        /// Its title; nil if it has none.
        public var title: String?
        /// Exact number of its members.
        public var count: Int
        /// Lease in milliseconds, renewed by each use.
        public var leaseMs: Int

        public init(id: ObjectID, title: String? = nil, count: Int, leaseMs: Int) {
            self.id = id
            self.title = title
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
                .optional("title", \.title, .text(maxBytes: TextLimit.title), "Its title."),
                .required("count", \.count, .count(0...Int.max), "Number of its members."),
                .required("leaseMs", \.leaseMs, .count(0...Int.max), "Lease in milliseconds, renewed by each use."),
            ]
        )
    }
}
