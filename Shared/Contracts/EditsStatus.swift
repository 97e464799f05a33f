public import JSONValue
import PhotoModel

/// `edits.status` of the catalog: the states of published edits.
///
/// For publishers that missed an outcome on the feed; sending a finished edit again makes no new record.
public struct EditsStatus: Request {
    public static let method = "edits.status"
    /// Ids of the edits.
    public var ids: [String]
    /// The publisher; accepted from services only.
    public var onBehalfOf: String?
    /// Time in milliseconds to wait until the state of one of the edits changes.
    public var wait: Int

    /// The maximum number of ids in one request.
    public static let maxIDs = 1000

    public init(ids: [String], onBehalfOf: String? = nil, wait: Int = 0) {
        self.ids = ids
        self.onBehalfOf = onBehalfOf
        self.wait = wait
    }

    public static let table = parameters(
        "The states of edits that this identity has published.",
        blank: EditsStatus(ids: []),
        [
            .required("ids", \.ids, .list(of: .publishedEditID, limit: maxIDs), "Ids of the edits."),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "The publisher; for services only."),
            .defaulted(
                "wait",
                \.wait,
                .count(0...60_000),
                "Time in milliseconds to wait until the state of one of them changes.",
                default: 0
            ),
        ]
    )

    /// The states of published edits.
    public struct Result: JSONTabled {
        /// The known edits, in the order of the request.
        public var edits: [EditStatus]
        /// Ids that never arrived, or whose edits finished before the retained history.
        public var unknown: [String]

        public init(edits: [EditStatus], unknown: [String]) {
            self.edits = edits
            self.unknown = unknown
        }

        public static let table = JSONTable(
            "EditsStatus",
            "The states of published edits.",
            unknown: .ignored,
            blank: Result(edits: [], unknown: []),
            [
                .required("edits", \.edits, .list(of: .object(EditStatus.self), limit: maxIDs), "The known edits."),
                .required(
                    "unknown",
                    \.unknown,
                    .list(of: .text(maxBytes: PublishedEdit.maxIDBytes), limit: maxIDs),
                    "Ids that never arrived, or that finished before the retained history: publish them again."
                ),
            ]
        )
    }
}
