public import JSONValue
public import PhotoModel

/// `edits.preview`: renders an edit at a size, without committing it.
public struct PreviewEdit: Request {
    public static let method = "edits.preview"
    /// The asset.
    public var asset: ObjectID
    /// The operations, in order.
    public var adjustments: AdjustmentList
    /// Options of ImageMagick's `convert`, which become operations after `adjustments`; nil for none.
    public var magick: MagickOptions?
    /// The longer side of the preview, in pixels.
    public var maximumSide: Int
    /// Microseconds of a video at which the frame is rendered; nil for the first frame that is not almost
    /// a single colour. Nil for photos.
    public var frameTime: Int64?
    /// The engine that renders the pixels; nil for the engine that the adjustments name, or else the editor's setting.
    public var engine: RenderEngine?
    /// True if an original that is in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        asset: ObjectID,
        adjustments: AdjustmentList,
        magick: MagickOptions? = nil,
        maximumSide: Int = 1024,
        frameTime: Int64? = nil,
        engine: RenderEngine? = nil,
        atLeast: ChangeToken? = nil
    ) {
        self.asset = asset
        self.adjustments = adjustments
        self.magick = magick
        self.maximumSide = maximumSide
        self.frameTime = frameTime
        self.engine = engine
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Renders an edit without committing it: a photo, or a frame of a video.",
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
            .optional(
                "frameTime",
                \.frameTime,
                .integer(0...86_400_000_000),
                "Microseconds of a video at which the frame is rendered. Default: the start of the part that is kept,"
                    + " or the first frame that is not nearly one colour."
            ),
            .engine(\.engine),
            .networkAccess(\.isNetworkAccessAllowed),
            .atLeast(\.atLeast),
        ]
    )

    /// The description of the attached image.
    public struct Result: JSONTabled {
        /// Media type of the bytes.
        public var mimeType: String
        /// Width in pixels.
        public var pixelWidth: Int
        /// Height in pixels.
        public var pixelHeight: Int
        /// The video of a Live Photo, the second attachment; nil if the adjustments do not apply to it.
        public var pairedVideo: PairedVideo?
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
                .optional(
                    "film",
                    \.pairedVideo,
                    .object(PairedVideo.self),
                    "The video of a Live Photo, which is the second attachment; if the adjustments have livePhoto."
                ),
                .sequence(\.sequence),
            ]
        )
    }

    /// The edited video of a Live Photo.
    public struct PairedVideo: JSONTabled {
        /// Media type of the bytes.
        public var mimeType: String
        /// Width in pixels.
        public var pixelWidth: Int
        /// Height in pixels.
        public var pixelHeight: Int

        public init(mimeType: String, pixelWidth: Int, pixelHeight: Int) {
            self.mimeType = mimeType
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
        }

        public static let table = JSONTable(
            "PreviewFilm",
            "Description of the attached video.",
            unknown: .ignored,
            blank: PairedVideo(mimeType: "", pixelWidth: 0, pixelHeight: 0),
            [
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Width in pixels."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Height in pixels."),
            ]
        )
    }
}
