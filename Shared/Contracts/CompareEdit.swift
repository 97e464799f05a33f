public import JSONValue
public import PhotoModel

/// `edits.compare`: an asset before and after its edits, side by side in one image.
public struct CompareEdit: Request {
    public typealias Result = PreviewEdit.Result
    public static let method = "edits.compare"
    /// The asset.
    public var asset: ObjectID
    /// The longer side of each of the two, in pixels.
    public var maximumSide: Int
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(asset: ObjectID, maximumSide: Int = 1024, atLeast: ChangeToken? = nil) {
        self.asset = asset
        self.maximumSide = maximumSide
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Renders the original and the edited image side by side.",
        blank: CompareEdit(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "maximumSide",
                \.maximumSide,
                .count(16...2048),
                "The longer side of each of the two, in pixels.",
                default: 1024
            ),
            .atLeast(\.atLeast),
        ]
    )
}
