public import JSONValue
public import PhotoModel

/// `livePhoto.request`: the still of a Live Photo at a size, and what is needed to play its video (T-47).
///
/// The still may come first as `image.degraded`. The response is the last message: the complete Live Photo or an error,
/// of which `user_cancelled` corresponds to `PHLivePhotoInfoCancelledKey`. The video is read with `video.read` and the
/// `stream` of its description. Photo and video were compared when they were imported: where both have a content
/// identifier, they have the same.
public struct LivePhotoRequest: Request {
    public static let method = "livePhoto.request"
    /// The Live Photo or motion photo.
    public var asset: ObjectID
    /// Size of the still in pixels, or the maximum. A size of zero is the maximum.
    public var targetSize: TargetSize
    /// Fit the still into the size, or fill the size.
    public var contentMode: ImageContentMode
    /// opportunistic: a degraded still first if it is faster; highQualityFormat: only the requested one; fastFormat:
    /// one still, degraded if that is available sooner.
    public var deliveryMode: ImageDeliveryMode
    /// The Live Photo with or without edits.
    public var version: ImageVersion
    /// Format of the still.
    public var format: DeliveredFormat
    /// Quality of lossy formats, 1...100.
    public var quality: Int
    /// True if the original may be downloaded from remote storage.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        asset: ObjectID,
        targetSize: TargetSize = .maximum,
        contentMode: ImageContentMode = .aspectFit,
        deliveryMode: ImageDeliveryMode = .opportunistic,
        version: ImageVersion = .current,
        format: DeliveredFormat = .jpeg,
        quality: Int = 85,
        atLeast: ChangeToken? = nil
    ) {
        self.asset = asset
        self.targetSize = targetSize
        self.contentMode = contentMode
        self.deliveryMode = deliveryMode
        self.version = version
        self.format = format
        self.quality = quality
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The still of a Live Photo at a size, and what is needed to play its video.",
        blank: LivePhotoRequest(asset: .none),
        [
            .asset(\.asset),
            .required(
                "targetSize",
                \.targetSize,
                .targetSize,
                "Size of the still in pixels, or \"max\"; zero is \"max\"."
            ),
            .defaulted(
                "contentMode",
                \.contentMode,
                .name(ImageContentMode.self),
                "Fit the still into the size, or fill the size.",
                default: .aspectFit
            ),
            .defaulted(
                "deliveryMode",
                \.deliveryMode,
                .name(ImageDeliveryMode.self),
                "opportunistic: a degraded still first if it is faster; highQualityFormat: only the requested one; "
                    + "fastFormat: one still, degraded if that is available sooner.",
                default: .opportunistic
            ),
            .version(\.version),
            .defaulted("format", \.format, .name(DeliveredFormat.self), "Format of the still.", default: .jpeg),
            .defaulted("quality", \.quality, .count(1...100), "Quality of lossy formats.", default: 85),
            .defaulted(
                "networkAccessAllowed",
                \.isNetworkAccessAllowed,
                .flag,
                "True if the original may be downloaded from remote storage.",
                default: false
            ),
            .atLeast(\.atLeast),
        ]
    )

    /// The request for the still.
    public var still: ImageRequest {
        var size = targetSize
        if size == .size(width: 0, height: 0) { size = .maximum }
        var still = ImageRequest(
            asset: asset,
            targetSize: size,
            contentMode: contentMode,
            deliveryMode: deliveryMode,
            version: version,
            format: format,
            quality: quality,
            atLeast: atLeast
        )
        still.isNetworkAccessAllowed = isNetworkAccessAllowed
        return still
    }

    /// A Live Photo: the attached still, and the facts that a player of its video needs.
    public struct Result: JSONTabled {
        /// Description of the attached still.
        public var still: ImageRequest.Result
        /// The ticket to play the video.
        public var video: VideoPlayback.Result
        /// True if the still is of lower quality than requested.
        public var isDegraded: Bool
        /// True, because this is the last message about the request.
        public var isFinal = true

        public init(still: ImageRequest.Result, video: VideoPlayback.Result) {
            self.still = still
            self.video = video
            isDegraded = still.isDegraded
        }

        public static let table = JSONTable(
            "LivePhoto",
            "A Live Photo: the attached still, and its video.",
            unknown: .ignored,
            blank: Result(
                still: ImageRequest.Result(
                    asset: .none,
                    contentRevision: Revision(0),
                    sequence: 0,
                    mimeType: "",
                    pixelWidth: 0,
                    pixelHeight: 0
                ),
                video: VideoPlayback.Result(
                    asset: .none,
                    resource: AssetResource(type: .pairedVideo, digest: "", size: 0, contentType: "")
                )
            ),
            [
                .required("still", \.still, .object(ImageRequest.Result.self), "Description of the attached still."),
                .required("film", \.video, .object(VideoPlayback.Result.self), "The facts that a player needs."),
                .required("isDegraded", \.isDegraded, .flag, "True if the still is of lower quality than requested."),
                .defaulted(
                    "isFinal",
                    \.isFinal,
                    .flag,
                    "True if this is the last message about the request.",
                    default: true,
                    isWritten: true
                ),
            ]
        )
    }
}
