public import JSONValue
public import PhotoModel

/// `image.request`: an image of an asset at a size (S-40 to S-51, T-44).
///
/// Every message about it carries the request's id (`PHImageResultRequestIDKey`). A client that accepts notifications
/// may receive `image.degraded` before the response, which is always the last message. It is the image or an error:
/// `user_cancelled` corresponds to `PHImageCancelledKey`, any other error to `PHImageErrorKey`.
public struct ImageRequest: Request {
    public static let method = "image.request"
    /// The asset.
    public var asset: ObjectID
    /// Size in pixels, or the maximum.
    public var targetSize: TargetSize
    /// Fit the image into the size, or fill the size.
    public var contentMode: ImageContentMode
    /// none: all pixels; fast: the size, but never enlarged, and aspectFill cuts nothing off; exact: the size, enlarged
    /// if necessary.
    public var resizeMode: ImageResizeMode
    /// opportunistic: a degraded image first if it is faster; highQualityFormat: only the requested image; fastFormat:
    /// one image, degraded if that is available sooner.
    public var deliveryMode: ImageDeliveryMode
    /// Part of the displayed image, as fractions of its sides; requires resizeMode exact.
    public var normalizedCropRect: UnitRect?
    /// The image with or without edits.
    public var version: ImageVersion
    /// Format of the image.
    public var format: DeliveredFormat
    /// Quality of lossy formats, 1...100.
    public var quality: Int
    /// True if exactly one message is sent, with the requested image, regardless of the delivery mode (D5).
    public var isSynchronous = false
    /// True if the original may be downloaded from remote storage. The pixels do not depend on it.
    public var isNetworkAccessAllowed = false
    /// True if a second, larger degraded image may be sent (T-44).
    public var allowsSecondaryDegradedImage = false
    /// Id of the caching manager that may have prepared the image; nil for none.
    public var cache: String?
    /// Of a video: microseconds; the first frame at or after it is shown. Nil for the first frame of the first three
    /// seconds that is not almost a single colour.
    public var frameTime: Int64?
    /// True for high dynamic range where the asset has it and the format can hold it: an AVIF of ten bits in BT.2020
    /// and PQ, or a JPEG in standard range with its gain map beside it.
    public var prefersHDR = false
    /// The brightest white that the display can show, over white in standard range; 0 if it is unknown, and then all of
    /// the gain is applied. Values below 1 count as 0. A JPEG does not depend on it.
    public var targetHDRHeadroom = 0.0
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    /// - Parameter deliveryMode: opportunistic if absent on the wire, as in PhotoKit
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

    /// The numbers that `targetHDRHeadroom` may have.
    static let headrooms = -65_536.0...65_536

    public static let table = parameters(
        "An image of an asset at a size.",
        blank: ImageRequest(asset: .none, targetSize: .maximum),
        [
            .asset(\.asset),
            .required("targetSize", \.targetSize, .targetSize, "Size in pixels, or \"max\"."),
            .defaulted(
                "contentMode",
                \.contentMode,
                .name(ImageContentMode.self),
                "Fit the image into the size, or fill the size.",
                default: .aspectFit
            ),
            .defaulted(
                "resizeMode",
                \.resizeMode,
                .name(ImageResizeMode.self),
                "none: all pixels; fast: the size, but never enlarged, and aspectFill cuts nothing off; exact: the "
                    + "size, enlarged if necessary.",
                default: .fast
            ),
            .defaulted(
                "deliveryMode",
                \.deliveryMode,
                .name(ImageDeliveryMode.self),
                "opportunistic: a degraded image first if it is faster; highQualityFormat: only the requested image; "
                    + "fastFormat: one image, degraded if that is available sooner.",
                default: .opportunistic
            ),
            .optional(
                "normalizedCropRect",
                \.normalizedCropRect,
                .object(UnitRect.self),
                "Part of the displayed image, as fractions of its sides; requires resizeMode exact."
            ),
            .version(\.version),
            .defaulted("format", \.format, .name(DeliveredFormat.self), "Format of the image.", default: .jpeg),
            .defaulted("quality", \.quality, .count(1...100), "Quality of lossy formats.", default: 85),
            .defaulted(
                "synchronous",
                \.isSynchronous,
                .flag,
                "Send exactly one message, as with highQualityFormat, regardless of deliveryMode.",
                default: false
            ),
            .defaulted(
                "networkAccessAllowed",
                \.isNetworkAccessAllowed,
                .flag,
                "True if the original may be downloaded from remote storage.",
                default: false
            ),
            .defaulted(
                "allowSecondaryDegradedImage",
                \.allowsSecondaryDegradedImage,
                .flag,
                "True if a second, larger degraded image may be sent.",
                default: false
            ),
            .optional(
                "frameTime",
                \.frameTime,
                .integer(0...Int64.max),
                "Of a video: microseconds; the first frame at or after it. Absent: the first frame of the first three "
                    + "seconds that is not nearly one colour."
            ),
            .defaulted(
                "preferHDR",
                \.prefersHDR,
                .flag,
                "High dynamic range where the asset has it and the format is avif, 10 bits in BT.2020 and PQ, or jpeg, in "
                    + "standard range with its gain map.",
                default: false
            ),
            .defaulted(
                "targetHDRHeadroom",
                \.targetHDRHeadroom,
                .number(ImageRequest.headrooms),
                "The brightest white of the display over white in standard range; below 1: unknown.",
                default: 0
            ),
            .optional("cache", \.cache, .text(maxBytes: 64), "Id of a caching manager that may have prepared it."),
            .atLeast(\.atLeast),
        ]
    )

    /// The description of the attached image.
    public struct Result: JSONTabled {
        /// The asset.
        public var asset: ObjectID
        /// Content revision of the image.
        public var contentRevision: Revision
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64
        /// Media type of the bytes.
        public var mimeType: String
        /// Width of this image in pixels.
        public var pixelWidth: Int
        /// Height of this image in pixels.
        public var pixelHeight: Int
        /// True if the image is of lower quality than requested. ``isFinal`` is true if no more messages follow (P-09).
        public var isDegraded: Bool
        /// True if this is the last message about the request.
        public var isFinal = true
        /// Index of the image among those of the request, from 0.
        public var index = 0
        /// True if the original is in remote storage and network access was not allowed; there is no image then.
        public var isInCloud = false
        /// True if it is larger than the source.
        public var isUpscaled: Bool
        /// True if it was cached.
        public var isCacheHit: Bool
        /// The source of the image, or the reason it was not cached.
        public var cacheReason: CacheReason = .rendered
        /// Size of the image in bytes, over all attachments or chunks.
        public var size: Int64 = 0
        /// Of a video: the time of the frame in microseconds.
        public var frameTime: Int64?
        /// The headroom for which the image has high dynamic range, at least 1; nil for standard range.
        public var hdrHeadroom: Double?

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
            "Description of the attached bytes.",
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
                .required("contentRevision", \.contentRevision, .revision, "Content revision of the image."),
                .sequence(\.sequence),
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Width of this image in pixels."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Height of this image in pixels."),
                .required("isDegraded", \.isDegraded, .flag, "True if the quality is lower than requested."),
                .defaulted(
                    "isFinal",
                    \.isFinal,
                    .flag,
                    "True if this is the last message about the request.",
                    default: true,
                    isWritten: true
                ),
                .defaulted(
                    "index",
                    \.index,
                    .count(0...1000),
                    "Index of the image among those of the request, from 0.",
                    default: 0,
                    isWritten: true
                ),
                .defaulted("isInCloud", \.isInCloud, .flag, "In remote storage.", default: false, isWritten: true),
                .required("isUpscaled", \.isUpscaled, .flag, "True if it is larger than the source."),
                .required("isCacheHit", \.isCacheHit, .flag, "True if it was cached."),
                .defaulted(
                    "cacheReason",
                    \.cacheReason,
                    .name(CacheReason.self),
                    "Source of the image, or the reason it was not cached.",
                    default: .rendered,
                    isWritten: true
                ),
                .defaulted("size", \.size, .integer(0...Int64.max), "Size in bytes.", default: 0, isWritten: true),
                .optional(
                    "frameTime",
                    \.frameTime,
                    .integer(0...Int64.max),
                    "Of a video: the time of the frame in microseconds."
                ),
                .optional(
                    "hdrHeadroom",
                    \.hdrHeadroom,
                    .number(1...65_536),
                    "The brightest white over white in standard range; absent: standard range."
                ),
            ]
        )
    }
}

// MARK: - Delivery

/// Names and sizes of the messages that deliver an image.
public enum ImageDelivery {
    /// The notification with a degraded image; at least one more message follows.
    public static let degraded = "image.degraded"
    /// The notification with a part of an image that is too large for the response: `offset`, and the bytes as an
    /// attachment. Parts are sent in order.
    public static let chunk = "image.chunk"
    /// The maximum size of a part in a notification, in bytes.
    public static let chunkBytes = 1 << 20
    /// Images of at most this many bytes are attached to the response, in parts of at most 8 MiB to be joined in order.
    public static let maxAttachedBytes = 15 << 20
}

/// The source of an image, or the reason it was not cached (P-11).
public enum CacheReason: String, Sendable, Hashable, CaseIterable {
    /// Cached in memory.
    case memory
    /// Cached because the caching manager named in the request had prepared exactly this image.
    case prepared
    /// Cached on disk.
    case disk
    /// Not cached; shared with another request for the same image that was in progress.
    case shared
    /// Not cached; rendered for this request.
    case rendered
    /// Not cached: the caching manager prepares this asset with other options or at another size.
    case optionsDiffer
    /// Not cached: the caching manager has the image on its list but has not prepared it yet.
    case notPreparedYet
    /// A smaller cached image.
    case smaller
    /// The preview that is embedded in the file.
    case preview
    /// Decoded at a fraction of its size, which is faster.
    case quick
}
