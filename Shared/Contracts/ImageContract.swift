public import JSONValue
public import PhotoModel

/// How the bytes of an image leave the thumbnailer.
public enum ImageDelivery {
    /// A better image than nothing, on the way to the one that was asked for; at least one more message follows.
    public static let degraded = "image.degraded"
    /// A part of an image that is too large for the reply: `offset`, and the bytes as attachment. They come in order.
    public static let chunk = "image.chunk"
    public static let chunkBytes = 1 << 20
    /// Images up to this size come with the reply itself, in attachments of at most 8 MiB, joined in their order.
    public static let inReply = 15 << 20
}

/// `image.request`: an image of an asset at a size (spec S-40 to S-51, T-44 and section 8).
///
/// Every message about it carries the request's id (`PHImageResultRequestIDKey`). A client that takes notifications may
/// get `image.degraded` before the one response, which is always the last message: the image, or an error, of which
/// `user_cancelled` is `PHImageCancelledKey` and any other `PHImageErrorKey`.
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
    /// Exactly one message, the image as it was asked for, whatever the delivery mode says (D5).
    public var isSynchronous = false
    /// Whether the original may be fetched from elsewhere; no pixel depends on it.
    public var isNetworkAccessAllowed = false
    /// Whether a second, larger degraded image may come (T-44).
    public var allowsSecondaryDegradedImage = false
    /// The caching manager on whose behalf it is asked.
    public var cache: String?
    public var atLeast: ChangeToken?

    /// - Parameter deliveryMode: on the wire an absent one means opportunistic, as in PhotoKit
    public init(
        asset: ObjectID,
        targetSize: TargetSize,
        contentMode: ImageContentMode = .aspectFit,
        resizeMode: ImageResizeMode = .fast,
        deliveryMode: ImageDeliveryMode = .opportunistic,
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

    public static let table = parameters(
        "An image of an asset at a size.",
        blank: ImageRequest(asset: .none, targetSize: .maximum),
        [
            .asset(\.asset),
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
                "opportunistic: a quick image first where that helps; highQualityFormat: only the good one; "
                    + "fastFormat: one image, the quick one if it is at hand first.",
                default: .opportunistic
            ),
            .optional(
                "normalizedCropRect",
                \.normalizedCropRect,
                .object(UnitRect.self),
                "Part of the displayed image, in units of its sides; needs resizeMode exact."
            ),
            .version(\.version),
            .defaulted("format", \.format, .name(DeliveredFormat.self), "Format of the bytes.", default: .jpeg),
            .defaulted("quality", \.quality, .count(1...100), "Of lossy formats.", default: 85),
            .defaulted(
                "synchronous",
                \.isSynchronous,
                .flag,
                "One message, as highQualityFormat, whatever deliveryMode says.",
                default: false
            ),
            .defaulted(
                "networkAccessAllowed",
                \.isNetworkAccessAllowed,
                .flag,
                "Whether the original may be fetched from elsewhere.",
                default: false
            ),
            .defaulted(
                "allowSecondaryDegradedImage",
                \.allowsSecondaryDegradedImage,
                .flag,
                "Whether a second, larger degraded image may come.",
                default: false
            ),
            .optional("cache", \.cache, .text(maxBytes: 64), "The caching manager that may have prepared it."),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        public var asset: ObjectID
        public var contentRevision: Revision
        public var sequence: Int64
        public var mimeType: String
        public var pixelWidth: Int
        public var pixelHeight: Int
        /// Less than was asked for; says nothing about whether more will come: ``isFinal`` does (P-09).
        public var isDegraded: Bool
        /// No further message about this request follows.
        public var isFinal = true
        /// Which image of the request this is, from 0.
        public var index = 0
        /// The image is elsewhere and the network was not allowed; there is no image then.
        public var isInCloud = false
        public var isUpscaled: Bool
        public var isCacheHit: Bool
        /// Where it came from, or why it was not at hand.
        public var cacheReason: CacheReason = .rendered
        /// Bytes of the image, in all attachments or chunks.
        public var size: Int64 = 0

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
            "What the attachments hold.",
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
                .asset(\.asset),
                .required("contentRevision", \.contentRevision, .revision, "The pixels' revision that is shown."),
                .sequence(\.sequence),
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "True width."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "True height."),
                .required("isDegraded", \.isDegraded, .flag, "Less than was asked for."),
                .defaulted(
                    "isFinal",
                    \.isFinal,
                    .flag,
                    "The last message about the request.",
                    default: true,
                    isWritten: true
                ),
                .defaulted(
                    "index",
                    \.index,
                    .count(0...1000),
                    "Which image of the request.",
                    default: 0,
                    isWritten: true
                ),
                .defaulted("isInCloud", \.isInCloud, .flag, "It is elsewhere.", default: false, isWritten: true),
                .required("isUpscaled", \.isUpscaled, .flag, "Larger than the source."),
                .required("isCacheHit", \.isCacheHit, .flag, "It was at hand."),
                .defaulted(
                    "cacheReason",
                    \.cacheReason,
                    .name(CacheReason.self),
                    "Where it came from, or why it was not at hand.",
                    default: .rendered,
                    isWritten: true
                ),
                .defaulted("size", \.size, .integer(0...Int64.max), "Bytes of the image.", default: 0, isWritten: true),
            ]
        )
    }
}

/// Where an image came from, or why it was not at hand (P-11).
public enum CacheReason: String, Sendable, Hashable, CaseIterable {
    /// At hand in memory.
    case memory
    /// At hand, because the caching manager that the request names had prepared exactly this.
    case prepared
    /// At hand on disk.
    case disk
    /// Not at hand; somebody else asked for the same at the same time.
    case shared
    /// Not at hand, made now.
    case rendered
    /// Not at hand: the caching manager prepares this asset with other options, or at another size.
    case optionsDiffer
    /// Not at hand: the caching manager has this on its list and has not come to it yet.
    case notPreparedYet
    /// A smaller image that was at hand.
    case smaller
    /// The preview that is embedded in the file.
    case preview
    /// Decoded quickly, at a fraction of its size.
    case quick
}

/// `image.data`: the largest representation of an asset, as it is stored (spec S-52, T-46).
///
/// Bytes of an asset without edits are those that were imported. Of a large one with a REQ socket, or in parts, the
/// catalog's `resource.read` is the way.
public struct ImageData: Request {
    public static let method = "image.data"
    public var asset: ObjectID
    public var version: ImageVersion
    public var isNetworkAccessAllowed = false
    public var atLeast: ChangeToken?

    public init(asset: ObjectID, version: ImageVersion = .current, atLeast: ChangeToken? = nil) {
        self.asset = asset
        self.version = version
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The bytes of the largest representation of an asset.",
        blank: ImageData(asset: .none),
        [
            .asset(\.asset),
            .version(\.version),
            .defaulted(
                "networkAccessAllowed",
                \.isNetworkAccessAllowed,
                .flag,
                "Whether the original may be fetched from elsewhere.",
                default: false
            ),
            .atLeast(\.atLeast),
        ]
    )

    public struct Result: JSONTabled {
        public var asset: ObjectID
        public var contentRevision: Revision
        public var sequence: Int64
        /// SHA-256 of the bytes.
        public var digest: String
        public var size: Int64
        /// Uniform type identifier.
        public var contentType: String
        public var mimeType: String
        /// EXIF 1...8 as it stands in the file; 1 where there is none or the decoder obeys it by itself.
        public var orientation: Int
        /// Pixels as displayed; 0 where they are not known.
        public var pixelWidth: Int
        public var pixelHeight: Int
        public var isInCloud = false

        public init(
            asset: ObjectID,
            contentRevision: Revision,
            sequence: Int64,
            digest: String,
            size: Int64,
            contentType: String,
            mimeType: String,
            orientation: Int,
            pixelWidth: Int,
            pixelHeight: Int
        ) {
            self.asset = asset
            self.contentRevision = contentRevision
            self.sequence = sequence
            self.digest = digest
            self.size = size
            self.contentType = contentType
            self.mimeType = mimeType
            self.orientation = orientation
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
        }

        public static let table = JSONTable(
            "ImageBytes",
            "What the attachments hold.",
            unknown: .ignored,
            blank: Result(
                asset: .none,
                contentRevision: Revision(0),
                sequence: 0,
                digest: "",
                size: 0,
                contentType: "",
                mimeType: "",
                orientation: 1,
                pixelWidth: 0,
                pixelHeight: 0
            ),
            [
                .asset(\.asset),
                .required("contentRevision", \.contentRevision, .revision, "The pixels' revision that is delivered."),
                .sequence(\.sequence),
                .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes."),
                .required("size", \.size, .integer(0...Int64.max), "Bytes."),
                .required("contentType", \.contentType, .text(maxBytes: 128), "Uniform type identifier."),
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type."),
                .required("orientation", \.orientation, .count(1...8), "EXIF orientation of the file."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels as displayed, 0: not known."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Pixels as displayed, 0: not known."),
                .defaulted("isInCloud", \.isInCloud, .flag, "It is elsewhere.", default: false, isWritten: true),
            ]
        )
    }
}
