public import JSONValue
public import PhotoModel

/// `edits.preview`: renders an edit at a size, without committing it.
public struct PreviewEdit: Request {
    public static let method = "edits.preview"
    /// The asset.
    public var asset: ObjectID
    /// The operations, in order.
    public var adjustments: AdjustmentList
    /// Options of ImageMagick's `convert`, which become operations behind `adjustments`; nil for none.
    public var magick: MagickOptions?
    /// The longer side of the preview, in pixels.
    public var maximumSide: Int
    /// The engine that renders the pixels; nil for the engine that the adjustments name, or else the editor's setting.
    public var engine: RenderEngine?
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        asset: ObjectID,
        adjustments: AdjustmentList,
        magick: MagickOptions? = nil,
        maximumSide: Int = 1024,
        engine: RenderEngine? = nil,
        atLeast: ChangeToken? = nil
    ) {
        self.asset = asset
        self.adjustments = adjustments
        self.magick = magick
        self.maximumSide = maximumSide
        self.engine = engine
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Renders an edit without committing it.",
        blank: PreviewEdit(asset: .none, adjustments: AdjustmentList(operations: [])),
        [
            .asset(\.asset),
            .defaulted(
                "adjustments",
                \.adjustments,
                .adjustments,
                "The operations, in order.",
                default: AdjustmentList(),
                isWritten: true
            ),
            .magick(\.magick),
            .defaulted("maximumSide", \.maximumSide, .count(16...4096), "The longer side in pixels.", default: 1024),
            .engine(\.engine),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        /// Media type of the bytes.
        public var mimeType: String
        /// Width in pixels.
        public var pixelWidth: Int
        /// Height in pixels.
        public var pixelHeight: Int
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64

        public init(mimeType: String, pixelWidth: Int, pixelHeight: Int, sequence: Int64) {
            self.mimeType = mimeType
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
            self.sequence = sequence
        }

        public static let table = JSONTable(
            "Preview",
            "Description of the attached image.",
            unknown: .ignored,
            blank: Result(mimeType: "", pixelWidth: 0, pixelHeight: 0, sequence: 0),
            [
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Width in pixels."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Height in pixels."),
                .sequence(\.sequence),
            ]
        )
    }
}
