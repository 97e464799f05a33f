public import JSONValue
public import PhotoModel

/// `edits.suggest`: operations that would improve an image, with explicit values.
public struct SuggestEdit: Request {
    public static let method = "edits.suggest"
    /// The asset.
    public var asset: ObjectID
    /// True if an original that is in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(asset: ObjectID, atLeast: ChangeToken? = nil) {
        self.asset = asset
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Suggests operations that would improve the version that an edit starts from, with explicit values; nothing is committed.",
        blank: SuggestEdit(asset: .none),
        [.asset(\.asset), .networkAccess(\.isNetworkAccessAllowed), .atLeast(\.atLeast)]
    )

    /// The suggested operations.
    public struct Result: JSONTabled {
        /// The operations, in order.
        public var adjustments: AdjustmentList

        public init(adjustments: AdjustmentList) { self.adjustments = adjustments }

        public static let table = JSONTable(
            "Suggestion",
            "Adjustments for edits.apply.",
            unknown: .ignored,
            blank: Result(adjustments: AdjustmentList()),
            [.required("adjustments", \.adjustments, .adjustments, "The operations, in order.")]
        )
    }
}
