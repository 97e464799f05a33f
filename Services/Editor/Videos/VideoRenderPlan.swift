import JSONValue
import PhotoModel

/// A film, or a frame of it, to be rendered by a worker.
struct VideoRenderPlan: Sendable, Equatable, JSONTabled {
    /// The part of the file that is the film; nil for all of it.
    var offset: Int64?
    var size: Int64?
    /// The adjustment list as JSON.
    var adjustments: JSON
    /// Microseconds of the film at which a frame is rendered; nil for the first that is not nearly one colour.
    var frameTime: Int64?
    /// The longer side of the frame or film, in pixels; nil for the size that the operations give.
    var maximumSide: Int?
    /// True for a QuickTime file instead of MPEG-4.
    var isQuickTime: Bool
    /// The most bytes of the rendered film.
    var maxBytes: Int64

    init(
        _ film: AssetResource,
        _ adjustments: AdjustmentList,
        frameTime: Int64? = nil,
        maximumSide: Int? = nil,
        maxBytes: Int64 = 1
    ) {
        // The film of a Live Photo stays what Apple's programs expect.
        isQuickTime = film.isPairedVideo && film.contentType == "com.apple.quicktime-movie"
        (offset, size) = film.offset == nil ? (nil, nil) : (film.offset, film.size)
        self.adjustments = adjustments.json
        self.frameTime = frameTime
        self.maximumSide = maximumSide
        self.maxBytes = maxBytes
    }

    static let table = JSONTable(
        "VideoRenderPlan",
        "A film to render.",
        unknown: .refused,
        blank: VideoRenderPlan(
            AssetResource(type: .video, digest: "", size: 0, contentType: ""),
            AdjustmentList()
        ),
        [
            .optional("offset", \.offset, .integer(0...Int64.max), "First byte of the film."),
            .optional("size", \.size, .integer(0...Int64.max), "Bytes of the film."),
            .required("adjustments", \.adjustments, .any, "The adjustments."),
            .optional("frameTime", \.frameTime, .integer(0...Int64.max), "Microseconds of a frame."),
            .optional("maximumSide", \.maximumSide, .count(1...65_500), "The longer side."),
            .defaulted("isQuickTime", \.isQuickTime, .flag, "A QuickTime file instead of MPEG-4.", default: false),
            .required("maxBytes", \.maxBytes, .integer(1...Int64.max), "The most bytes of the render."),
        ]
    )
}

extension AssetResource {
    /// True for the film of a Live Photo.
    fileprivate var isPairedVideo: Bool {
        [.pairedVideo, .fullSizePairedVideo, .adjustmentBasePairedVideo].contains(type)
    }
}
