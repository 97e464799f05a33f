public import JSONValue
public import Messaging
public import PhotoModel

/// `image.request`: an image of an asset at a size (spec S-40 to S-51 and section 8).
public struct ImageRequest: Request {
    public static let method = "image.request"
    public var asset: ObjectID
    public var targetSize: TargetSize
    public var contentMode: ImageContentMode
    public var resizeMode: ImageResizeMode
    public var deliveryMode: ImageDeliveryMode
    public var normalizedCropRect: UnitRect?
    public var version: ImageVersion
    public var format: DeliveredFormat
    /// 1...100
    public var quality: Int
    public var atLeast: ChangeToken?

    public init(
        asset: ObjectID,
        targetSize: TargetSize,
        contentMode: ImageContentMode = .aspectFit,
        resizeMode: ImageResizeMode = .fast,
        deliveryMode: ImageDeliveryMode = .highQualityFormat,
        normalizedCropRect: UnitRect? = nil,
        version: ImageVersion = .current,
        format: DeliveredFormat = .jpeg,
        quality: Int = 85,
        atLeast: ChangeToken? = nil
    ) {
        self.asset = asset
        self.targetSize = targetSize
        self.contentMode = contentMode
        self.resizeMode = resizeMode
        self.deliveryMode = deliveryMode
        self.normalizedCropRect = normalizedCropRect
        self.version = version
        self.format = format
        self.quality = quality
        self.atLeast = atLeast
    }

    public static let table = JSONTable(
        method,
        "An image of an asset at a size.",
        unknown: .refused,
        blank: ImageRequest(asset: .none, targetSize: .maximum),
        [
            .required("asset", \.asset, .id(.asset), "The asset."),
            .required("targetSize", \.targetSize, .targetSize, "Pixels wanted, or \"max\"."),
            .defaulted(
                "contentMode",
                \.contentMode,
                .name(ImageContentMode.self),
                "Fit into the size or fill it.",
                default: .aspectFit
            ),
            .defaulted(
                "resizeMode",
                \.resizeMode,
                .name(ImageResizeMode.self),
                "none: all pixels; fast: at least the size, perhaps larger; exact: the size.",
                default: .fast
            ),
            .defaulted(
                "deliveryMode",
                \.deliveryMode,
                .name(ImageDeliveryMode.self),
                "One good image, or a quick one first.",
                default: .highQualityFormat
            ),
            .optional(
                "normalizedCropRect",
                \.normalizedCropRect,
                .object(UnitRect.self),
                "Part of the displayed image, in units of its sides; needs resizeMode exact."
            ),
            .defaulted("version", \.version, .name(ImageVersion.self), "With the edits or without.", default: .current),
            .defaulted("format", \.format, .name(DeliveredFormat.self), "Format of the bytes.", default: .jpeg),
            .defaulted("quality", \.quality, .count(1...100), "Of lossy formats.", default: 85),
            .optional("atLeast", \.atLeast, .token, "Show the library at this moment or a later one."),
        ]
    )

    public struct Result: JSONTabled {
        public var asset: ObjectID
        public var contentRevision: Revision
        public var sequence: Int64
        public var mimeType: String
        public var pixelWidth: Int
        public var pixelHeight: Int
        public var isDegraded: Bool
        public var isUpscaled: Bool
        public var isCacheHit: Bool

        public init(
            asset: ObjectID,
            contentRevision: Revision,
            sequence: Int64,
            mimeType: String,
            pixelWidth: Int,
            pixelHeight: Int,
            isDegraded: Bool = false,
            isUpscaled: Bool = false,
            isCacheHit: Bool = false
        ) {
            self.asset = asset
            self.contentRevision = contentRevision
            self.sequence = sequence
            self.mimeType = mimeType
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
            self.isDegraded = isDegraded
            self.isUpscaled = isUpscaled
            self.isCacheHit = isCacheHit
        }

        public static let table = JSONTable(
            "Image",
            "What the attachment holds.",
            unknown: .ignored,
            blank: Result(
                asset: .none,
                contentRevision: Revision(0),
                sequence: 0,
                mimeType: "",
                pixelWidth: 0,
                pixelHeight: 0
            ),
            [
                .required("asset", \.asset, .id(.asset), "The asset."),
                .required("contentRevision", \.contentRevision, .revision, "The pixels' revision that is shown."),
                .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction at which it was read."),
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "True width."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "True height."),
                .required("isDegraded", \.isDegraded, .flag, "Less than was asked for."),
                .required("isUpscaled", \.isUpscaled, .flag, "Larger than the source."),
                .required("isCacheHit", \.isCacheHit, .flag, "It was at hand."),
            ]
        )
    }
}

/// `image.sheet`: a contact sheet, several assets as one picture.
public struct ImageSheet: Request {
    public static let method = "image.sheet"
    public static let maxAssets = 400
    public var assets: [ObjectID]
    public var columns: Int
    /// Side of a cell, in pixels.
    public var cell: Int
    /// Text below each picture; none: the file name.
    public var labels: [String]
    public var version: ImageVersion
    public var atLeast: ChangeToken?

    public init(
        assets: [ObjectID],
        columns: Int = 6,
        cell: Int = 256,
        labels: [String] = [],
        version: ImageVersion = .current,
        atLeast: ChangeToken? = nil
    ) {
        self.assets = assets
        self.columns = columns
        self.cell = cell
        self.labels = labels
        self.version = version
        self.atLeast = atLeast
    }

    public static let table = JSONTable(
        method,
        "A contact sheet: several assets as one picture.",
        unknown: .refused,
        blank: ImageSheet(assets: []),
        [
            .required("assets", \.assets, .list(of: .id(.asset), limit: maxAssets), "The assets, row by row."),
            .defaulted("columns", \.columns, .count(1...40), "Pictures in a row.", default: 6),
            .defaulted("cell", \.cell, .count(32...1024), "Side of a cell, in pixels.", default: 256),
            .defaulted(
                "labels",
                \.labels,
                .list(of: .text(maxBytes: 256), limit: maxAssets),
                "Text below each picture; none: the file name.",
                default: []
            ),
            .defaulted("version", \.version, .name(ImageVersion.self), "With the edits or without.", default: .current),
            .optional("atLeast", \.atLeast, .token, "Show the library at this moment or a later one."),
        ]
    )

    public struct Result: JSONTabled {
        public var mimeType: String
        public var pixelWidth: Int
        public var pixelHeight: Int
        public var sequence: Int64
        /// Assets for which a grey field stands, with the reason.
        public var failed: JSONObject

        public init(mimeType: String, pixelWidth: Int, pixelHeight: Int, sequence: Int64, failed: JSONObject = [:]) {
            self.mimeType = mimeType
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
            self.sequence = sequence
            self.failed = failed
        }

        public static let table = JSONTable(
            "Sheet",
            "What the attachment holds.",
            unknown: .ignored,
            blank: Result(mimeType: "", pixelWidth: 0, pixelHeight: 0, sequence: 0),
            [
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Width."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Height."),
                .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction at which it was read."),
                .defaulted("failed", \.failed, .members, "Assets without a picture, and why.", default: [:]),
            ]
        )
    }
}

/// Every request of the thumbnailer.
public enum ThumbnailerRequest: Sendable {
    case image(ImageRequest)
    case sheet(ImageSheet)
    case discover(Discover)
    case health(Health)
    case figures(Figures)

    public static let methods: [MethodDescription] = [
        MethodDescription(ImageRequest.self, attachments: "Reply: the image."),
        MethodDescription(ImageSheet.self, attachments: "Reply: the picture."),
        MethodDescription(Discover.self), MethodDescription(Health.self), MethodDescription(Figures.self),
    ]

    public init(method: String, params: JSON) throws(RPCError) {
        switch method {
        case ImageRequest.method: self = .image(try ImageRequest(params: params))
        case ImageSheet.method: self = .sheet(try ImageSheet(params: params))
        case Discover.method: self = .discover(try Discover(params: params))
        case Health.method: self = .health(try Health(params: params))
        case Figures.method: self = .figures(try Figures(params: params))
        default: throw unknownMethod(method, Self.methods)
        }
    }
}
