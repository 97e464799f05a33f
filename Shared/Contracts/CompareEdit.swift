public import JSONValue
public import PhotoModel

/// `edits.compare`: an asset before and after its edits, side by side in one image.
public struct CompareEdit: Request {
    public typealias Result = PreviewEdit.Result
    public static let method = "edits.compare"
    /// The asset.
    public var asset: ObjectID
    /// The longer side of each of the two images, in pixels.
    public var maximumSide: Int
    /// True to write "before" and "after" below them, in 24 additional rows of pixels.
    public var hasLabels: Bool
    /// True if an original that is in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(asset: ObjectID, maximumSide: Int = 1024, hasLabels: Bool = false, atLeast: ChangeToken? = nil) {
        self.asset = asset
        self.hasLabels = hasLabels
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
            .defaulted(
                "labels",
                \.hasLabels,
                .flag,
                "Write \"before\" and \"after\" below them, in 24 further rows of pixels.",
                default: false
            ),
            .networkAccess(\.isNetworkAccessAllowed),
            .atLeast(\.atLeast),
        ]
    )
}
