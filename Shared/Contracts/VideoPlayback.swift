public import JSONValue
public import PhotoModel

/// `video.playback`: what is needed to play a video, `requestPlayerItemForVideo` (S-59, S-62).
///
/// The bytes are read in ranges with `video.read` and the `stream` of the response, or with `resource.read` of the
/// catalog. With `isFastStart` the stream begins with the file's index, so that a player can begin before it has all
/// bytes: a QuickTime or MPEG-4 file whose index is at its end is delivered in that order, without being copied.
public struct VideoPlayback: Request {
    public static let method = "video.playback"
    /// The video, or a Live Photo, whose paired video is played.
    public var asset: ObjectID
    /// The video with or without edits.
    public var version: VideoVersion
    /// Each mode delivers the whole file in high quality, also of a video in remote storage.
    public var deliveryMode: VideoDeliveryMode
    /// True if the original may be downloaded from remote storage.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        asset: ObjectID,
        version: VideoVersion = .current,
        deliveryMode: VideoDeliveryMode = .automatic,
        atLeast: ChangeToken? = nil
    ) {
        self.asset = asset
        self.version = version
        self.deliveryMode = deliveryMode
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The facts that a player of a video needs.",
        blank: VideoPlayback(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "version",
                \.version,
                .name(VideoVersion.self),
                "The video with or without edits.",
                default: .current
            ),
            .defaulted(
                "deliveryMode",
                \.deliveryMode,
                .name(VideoDeliveryMode.self),
                "Each mode delivers the whole file in high quality, also of a video in remote storage.",
                default: .automatic
            ),
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

    /// A track of the file.
    public struct Track: JSONTabled {
        /// `video`, `audio`, `text` or `other`.
        public var kind = ""
        /// FFmpeg's name of the codec, for example "h264".
        public var codec = ""
        /// The codec's profile; nil if unknown.
        public var profile: String?
        /// The codec's FourCC in the container.
        public var tag: String?
        /// True for a still, such as a cover.
        public var isPicture = false
        /// Bits per second; 0 if unknown, as for all numbers that follow.
        public var bitRate: Int64 = 0
        /// Width in pixels as stored.
        public var pixelWidth = 0
        /// Height in pixels as stored.
        public var pixelHeight = 0
        /// Bits per sample.
        public var bitDepth = 0
        /// Frames per second.
        public var frameRate = 0.0
        /// Samples of sound per second.
        public var sampleRate = 0
        /// Channels of sound.
        public var channels = 0
        /// ISO 639 code; nil if unknown.
        public var language: String?

        public init() {}

        public static let table = JSONTable(
            "VideoTrack",
            "A track of a video file; 0 for unknown numbers.",
            unknown: .ignored,
            blank: Track(),
            [
                .required("kind", \.kind, .text(maxBytes: 16), "video, audio, text or other."),
                .required("codec", \.codec, .text(maxBytes: 64), "FFmpeg's name, for example h264 or aac."),
                .optional("profile", \.profile, .text(maxBytes: 128), "The codec's profile."),
                .optional("tag", \.tag, .text(maxBytes: 8), "The codec's FourCC in the container."),
                .defaulted("isPicture", \.isPicture, .flag, "A still such as a cover.", default: false),
                .defaulted("bitRate", \.bitRate, .integer(0...Int64.max), "Bits per second.", default: 0),
                .defaulted("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels as stored.", default: 0),
                .defaulted("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Pixels as stored.", default: 0),
                .defaulted("bitDepth", \.bitDepth, .count(0...64), "Bits per sample.", default: 0),
                .defaulted("frameRate", \.frameRate, .number(0...1e9), "Frames per second.", default: 0),
                .defaulted("sampleRate", \.sampleRate, .count(0...1_000_000_000), "Samples per second.", default: 0),
                .defaulted("channels", \.channels, .count(0...1024), "Channels of sound.", default: 0),
                .optional("language", \.language, .text(maxBytes: 64), "ISO 639 code."),
            ]
        )
    }

    /// The facts that a player of a video needs.
    public struct Result: JSONTabled {
        /// The asset.
        public var asset: ObjectID
        /// Content revision of the video.
        public var contentRevision = Revision(0)
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64 = 0
        /// The resource with the video's bytes.
        public var resource: AssetResource
        /// The name of the stream for `video.read`.
        public var stream = ""
        /// The size of the stream in bytes.
        public var size: Int64 = 0
        /// True if a player can begin before it has all bytes.
        public var isFastStart = false
        /// True if the file's own index is at its end, so that the stream differs from the file in its order.
        public var isReordered = false
        /// Media type.
        public var mimeType = ""
        /// Length in microseconds.
        public var duration: Int64 = 0
        /// Width in pixels as displayed.
        public var pixelWidth = 0
        /// Height in pixels as displayed.
        public var pixelHeight = 0
        /// Degrees clockwise by which players turn the stored frames.
        public var rotation = 0.0
        /// Frames per second; 0 if unknown.
        public var frameRate = 0.0
        /// True for high dynamic range.
        public var isHDR = false
        /// FFmpeg's name of the colour primaries; "unknown" if the file does not name them.
        public var primaries = ""
        /// FFmpeg's name of the transfer function; "unknown" if the file does not name it.
        public var transfer = ""
        /// FFmpeg's name of the colour matrix; "unknown" if the file does not name it.
        public var matrix = ""
        /// The tracks of the file.
        public var tracks: [Track] = []
        /// True if the original is in remote storage and network access was not allowed.
        public var isInCloud = false

        public init(asset: ObjectID, resource: AssetResource) {
            self.asset = asset
            self.resource = resource
        }

        public static let table = JSONTable(
            "VideoPlayback",
            "The facts that a player of a video needs.",
            unknown: .ignored,
            blank: Result(asset: .none, resource: AssetResource(type: .video, digest: "", size: 0, contentType: "")),
            [
                .asset(\.asset),
                .required("contentRevision", \.contentRevision, .revision, "Content revision of the video."),
                .sequence(\.sequence),
                .required("resource", \.resource, .object(AssetResource.self), "The resource with its bytes."),
                .required("stream", \.stream, .text(maxBytes: 128), "Name of the stream for video.read."),
                .required("size", \.size, .integer(0...Int64.max), "Size of the stream in bytes."),
                .required("isFastStart", \.isFastStart, .flag, "True if a player can begin before it has all bytes."),
                .required(
                    "isReordered",
                    \.isReordered,
                    .flag,
                    "True if the stream has the index moved to its beginning."
                ),
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type."),
                .required("duration", \.duration, .integer(0...Int64.max), "Microseconds."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels as displayed."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Pixels as displayed."),
                .required("rotation", \.rotation, .number(0...360), "Degrees clockwise by which players turn frames."),
                .required("frameRate", \.frameRate, .number(0...1e9), "Frames per second; 0 if unknown."),
                .required("isHDR", \.isHDR, .flag, "High dynamic range: PQ or HLG."),
                .required(
                    "primaries",
                    \.primaries,
                    .text(maxBytes: 64),
                    "FFmpeg's name; \"unknown\" if the file does not name it."
                ),
                .required(
                    "transfer",
                    \.transfer,
                    .text(maxBytes: 64),
                    "FFmpeg's name; \"unknown\" if the file does not name it."
                ),
                .required(
                    "matrix",
                    \.matrix,
                    .text(maxBytes: 64),
                    "FFmpeg's name; \"unknown\" if the file does not name it."
                ),
                .required("tracks", \.tracks, .list(of: .object(Track.self), limit: 64), "The tracks."),
                .defaulted(
                    "isInCloud",
                    \.isInCloud,
                    .flag,
                    "The original is in remote storage, and network access was not allowed.",
                    default: false,
                    isWritten: true
                ),
            ]
        )
    }
}

/// PhotoKit's `PHVideoRequestOptionsDeliveryMode` (S-62).
public enum VideoDeliveryMode: String, NumberedName {
    /// PhotoKit's modes, all of which deliver the whole file.
    case automatic, highQualityFormat, mediumQualityFormat, fastFormat

    public var number: Int {
        switch self {
        case .automatic: 0
        case .highQualityFormat: 1
        case .mediumQualityFormat: 2
        case .fastFormat: 3
        }
    }
}

/// PhotoKit's `PHVideoRequestOptionsVersion` (S-62).
public enum VideoVersion: String, NumberedName {
    case current, original

    public var number: Int { self == .current ? 0 : 1 }
}
