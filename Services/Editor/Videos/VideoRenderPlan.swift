import JSONValue
import PhotoModel

/// A video, or a frame of it, to be rendered by a worker.
struct VideoRenderPlan: Sendable, Equatable, JSONTabled {
    /// The part of the file that is the video; nil for all of it.
    var offset: Int64?
    var size: Int64?
    /// The adjustment list as JSON.
    var adjustments: JSON
    /// Microseconds of the video at which a frame is rendered; nil for the first frame that is not almost a single
    /// colour.
    var frameTime: Int64?
    /// The longer side of the frame or video, in pixels; nil for the size that the operations give.
    var maximumSide: Int?
    /// True for a QuickTime file instead of MPEG-4.
    var isQuickTime: Bool
    /// The maximum number of bytes of the rendered video.
    var maxBytes: Int64

    init(
        _ video: AssetResource,
        _ adjustments: AdjustmentList,
        frameTime: Int64? = nil,
        maximumSide: Int? = nil,
        maxBytes: Int64 = 1
    ) {
        // Apple's programs expect the video of a Live Photo to be a QuickTime file.
        isQuickTime = video.isPairedVideo && video.contentType == "com.apple.quicktime-movie"
        (offset, size) = video.offset == nil ? (nil, nil) : (video.offset, video.size)
        self.adjustments = adjustments.json
        self.frameTime = frameTime
        self.maximumSide = maximumSide
        self.maxBytes = maxBytes
    }

    static let table = JSONTable(
        "VideoRenderPlan",
        "A video to render.",
        unknown: .refused,
        blank: VideoRenderPlan(
            AssetResource(type: .video, digest: "", size: 0, contentType: ""),
            AdjustmentList()
        ),
        [
            .optional("offset", \.offset, .integer(0...Int64.max), "First byte of the video."),
            .optional("size", \.size, .integer(0...Int64.max), "Bytes of the video."),
            .required("adjustments", \.adjustments, .any, "The adjustments."),
            .optional("frameTime", \.frameTime, .integer(0...Int64.max), "Microseconds of a frame."),
            .optional("maximumSide", \.maximumSide, .count(1...65_500), "The longer side."),
            .defaulted("isQuickTime", \.isQuickTime, .flag, "A QuickTime file instead of MPEG-4.", default: false),
            .required("maxBytes", \.maxBytes, .integer(1...Int64.max), "The maximum number of bytes of the render."),
        ]
    )
}

extension AssetResource {
    /// True for the video of a Live Photo.
    fileprivate var isPairedVideo: Bool {
        [.pairedVideo, .fullSizePairedVideo, .adjustmentBasePairedVideo].contains(type)
    }
}
