import Contracts
import JSONValue
import PhotoModel
import Video

/// The frame of a video that a rendition shows.
struct VideoFrameChoice: Sendable, Hashable, JSONTabled {
    /// Microseconds; nil for the first frame that is not almost a single colour.
    var time: Int64?
    /// The microseconds before the time within which a key frame is used instead.
    var tolerance: Int64 = 0

    static let table = JSONTable(
        "VideoFrameChoice",
        "Which frame of a video is shown.",
        unknown: .refused,
        blank: VideoFrameChoice(),
        [
            .optional("time", \.time, .integer(0...Int64.max), "Microseconds."),
            .defaulted("tolerance", \.tolerance, .integer(0...Int64.max), "Microseconds.", default: 0),
        ]
    )

    init() {}

    /// Creates the choice; nil for a photo.
    ///
    /// - Parameter parameter: the parameter of the request that contains the time
    /// - Throws: `invalid_options` for a time after the end, or of a photo
    init?(
        _ time: Int64?,
        tolerance: Int64 = 0,
        of resource: AssetResource,
        parameter: String = "frameTime"
    ) throws(RPCError) {
        guard resource.isVideo else {
            guard time == nil else {
                throw .frameTimeOfPhoto
            }
            return nil
        }
        if let time, let duration = resource.duration, duration > 0, time > duration {
            throw .frameTimeAfterEnd(time, duration: duration, parameter: parameter)
        }
        self.time = time
        self.tolerance = tolerance
    }

    var position: FramePosition { time.map { .at($0, tolerance: tolerance) } ?? .automatic }
}
