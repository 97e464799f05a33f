public import JSONValue
public import PhotoModel

/// `video.read`: bytes of a stream of `video.playback` (S-59).
///
/// As `resource.read`: a request without credit gets one response with at most ``ReadResource/maxReplyBytes``; with
/// credit `resource.chunk` notifications precede the response.
public struct ReadVideo: Request {
    public static let method = "video.read"
    /// The asset.
    public var asset: ObjectID
    /// The name of the stream.
    public var stream: String
    /// Offset of the first byte.
    public var offset: Int64
    /// Number of bytes; nil: to the end.
    public var length: Int64?
    /// True if the video may be downloaded from remote storage.
    public var isNetworkAccessAllowed = false

    public init(asset: ObjectID, stream: String, offset: Int64 = 0, length: Int64? = nil) {
        self.asset = asset
        self.stream = stream
        self.offset = offset
        self.length = length
    }

    public static let table = parameters(
        "Bytes of a stream of video.playback, whole or in part. Without credit, more than "
            + "\(ReadResource.maxReplyBytes) bytes are limit_exceeded.",
        blank: ReadVideo(asset: .none, stream: ""),
        [
            .asset(\.asset),
            .required("stream", \.stream, .text(maxBytes: 128), "Name of the stream, from video.playback."),
            .defaulted("offset", \.offset, .integer(0...Int64.max), "Offset of the first byte.", default: 0),
            .optional(
                "length",
                \.length,
                .integer(0...Int64.max),
                "Number of bytes; absent: to the end. Without credit at most \(ReadResource.maxReplyBytes)."
            ),
            .networkAccess(\.isNetworkAccessAllowed),
        ]
    )

    /// The delivered range of a stream.
    public struct Result: JSONTabled {
        /// Offset of the first byte delivered.
        public var offset: Int64
        /// Number of bytes delivered, from `offset`.
        public var length: Int64
        /// The size of the stream in bytes.
        public var size: Int64

        public init(offset: Int64, length: Int64, size: Int64) {
            self.offset = offset
            self.length = length
            self.size = size
        }

        public static let table = JSONTable(
            "VideoBytes",
            "The delivered range of a stream.",
            unknown: .ignored,
            blank: Result(offset: 0, length: 0, size: 0),
            [
                .required("offset", \.offset, .integer(0...Int64.max), "Offset of the first byte delivered."),
                .required("length", \.length, .integer(0...Int64.max), "Number of bytes delivered."),
                .required("size", \.size, .integer(0...Int64.max), "Size of the stream."),
            ]
        )
    }
}
