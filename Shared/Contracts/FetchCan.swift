public import JSONValue
public import PhotoModel

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

    /// The allowed operations.
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
