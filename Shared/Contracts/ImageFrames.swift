public import JSONValue
public import PhotoModel

/// `image.frames`: several frames of a video, for a strip.
///
/// The frames are attachments of the response, one each, in the order of the entries that have no error. Each is cached
/// like an image of `image.request`.
public struct ImageFrames: Request {
    public static let method = "image.frames"
    /// The maximum number of frames of one request: a message has at most 64 frames.
    public static let maxFrames = 60
    /// The video.
    public var asset: ObjectID
    /// The times of the frames in microseconds; empty to use `count`.
    public var times: [Int64]
    /// The number of frames at equal distances, each in the middle of its part of the video; nil to use `times`.
    public var count: Int?
    /// A key frame at most this many microseconds before a requested time may be shown instead, because it is decoded
    /// faster. Nil for half the distance between the frames with `count`, else 0.
    public var tolerance: Int64?
    /// Size in pixels, or the maximum.
    public var targetSize: TargetSize
    /// Fit the image into the size, or fill the size.
    public var contentMode: ImageContentMode
    /// none: all pixels; fast: the size, but never enlarged, and aspectFill cuts nothing off; exact: the size, enlarged
    /// if necessary.
    public var resizeMode: ImageResizeMode
    /// The video with or without edits.
    public var version: ImageVersion
    /// Format of the images.
    public var format: DeliveredFormat
    /// Quality of lossy formats, 1...100.
    public var quality: Int
    /// True if the video may be downloaded from remote storage.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        asset: ObjectID,
        times: [Int64] = [],
        count: Int? = nil,
        tolerance: Int64? = nil,
        targetSize: TargetSize = .size(width: 256, height: 256),
        contentMode: ImageContentMode = .aspectFit,
        resizeMode: ImageResizeMode = .fast,
        version: ImageVersion = .current,
        format: DeliveredFormat = .jpeg,
        quality: Int = 85,
        atLeast: ChangeToken? = nil
    ) {
        self.asset = asset
        self.times = times
        self.count = count
        self.tolerance = tolerance
        self.targetSize = targetSize
        self.contentMode = contentMode
        self.resizeMode = resizeMode
        self.version = version
        self.format = format
        self.quality = quality
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Several frames of a video, for a strip. Give times or count.",
        blank: ImageFrames(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "times",
                \.times,
                .list(of: .integer(0...Int64.max), limit: maxFrames),
                "Microseconds; the first frame at or after each.",
                default: []
            ),
            .optional("count", \.count, .count(1...maxFrames), "Frames at equal distances."),
            .optional(
                "tolerance",
                \.tolerance,
                .integer(0...Int64.max),
                "Microseconds before a time in which a key frame is shown instead, which takes less time. Absent: half the "
                    + "distance of the frames with count, else 0."
            ),
            .defaulted(
                "targetSize",
                \.targetSize,
                .targetSize,
                "Size in pixels, or \"max\".",
                default: .size(width: 256, height: 256)
            ),
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
            .version(\.version),
            .defaulted("format", \.format, .name(DeliveredFormat.self), "Format of the images.", default: .jpeg),
            .defaulted("quality", \.quality, .count(1...100), "Quality of lossy formats.", default: 85),
            .networkAccess(\.isNetworkAccessAllowed),
            .atLeast(\.atLeast),
        ]
    )

    /// One frame of the response.
    public struct Frame: JSONTabled {
        /// The requested time, in microseconds.
        public var time: Int64
        /// The time of the frame in the response, in microseconds; nil if there is no image.
        public var frameTime: Int64?
        /// Width in pixels; 0 if there is no image.
        public var pixelWidth = 0
        /// Height in pixels; 0 if there is no image.
        public var pixelHeight = 0
        /// Size of the image in bytes.
        public var size = 0
        /// True if the frame was cached.
        public var isCacheHit = false
        /// The reason why there is no image: `name` and `message`; nil if there is one.
        public var error: JSONObject?

        public init(time: Int64) { self.time = time }

        public static let table = JSONTable(
            "VideoFrame",
            "One frame; it has an attachment unless it has an error.",
            unknown: .ignored,
            blank: Frame(time: 0),
            [
                .required("time", \.time, .integer(0...Int64.max), "The requested time in microseconds."),
                .optional("frameTime", \.frameTime, .integer(0...Int64.max), "The time of the frame, microseconds."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels; 0 if there is no image."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Pixels; 0 if there is no image."),
                .required("size", \.size, .count(0...Int.max), "Bytes."),
                .required("isCacheHit", \.isCacheHit, .flag, "True if it was cached."),
                .optional("error", \.error, .members, "The error, if there is no image: name and message."),
            ]
        )
    }

    /// The description of the attached frames.
    public struct Result: JSONTabled {
        /// The video.
        public var asset: ObjectID
        /// Content revision of the frames.
        public var contentRevision: Revision
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64
        /// Media type of the attachments.
        public var mimeType: String
        /// The frames, in the order of the request.
        public var frames: [Frame]

        public init(asset: ObjectID, contentRevision: Revision, sequence: Int64, mimeType: String, frames: [Frame]) {
            self.asset = asset
            self.contentRevision = contentRevision
            self.sequence = sequence
            self.mimeType = mimeType
            self.frames = frames
        }

        public static let table = JSONTable(
            "VideoFrames",
            "Description of the attached frames.",
            unknown: .ignored,
            blank: Result(asset: .none, contentRevision: Revision(0), sequence: 0, mimeType: "", frames: []),
            [
                .asset(\.asset),
                .required("contentRevision", \.contentRevision, .revision, "Content revision of the frames."),
                .sequence(\.sequence),
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the attachments."),
                .required("frames", \.frames, .list(of: .object(Frame.self), limit: maxFrames), "The frames."),
            ]
        )
    }
}
