public import JSONValue
public import PhotoModel

/// `edits.suggest`: operations that would improve an image, with explicit values.
public struct SuggestEdit: Request {
    public static let method = "edits.suggest"
    /// The asset.
    public var asset: ObjectID

    public init(asset: ObjectID) { self.asset = asset }

    public static let table = parameters(
        "Suggests operations that would improve the original, with explicit values; nothing is committed.",
        blank: SuggestEdit(asset: .none),
        [.asset(\.asset)]
    )

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
