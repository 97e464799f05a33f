import PhotoModel
import Video

/// The times and the sound of this program's edit of a video, relative to its original.
struct VideoEditTimes: Sendable, Hashable {
    /// Microseconds of the original; a nil end is that of the video.
    var start: Int64 = 0
    var end: Int64?
    /// Times as fast.
    var speed = 1.0
    /// Times as loud.
    var volume = 1.0
    /// True if it is an edit of another program's render, which is not kept.
    var isOnRender = false

    init(_ list: AdjustmentList) {
        isOnRender = list.isOnRender
        volume = list.livePhoto?.audioVolume ?? 1
        for operation in list.operations where !operation.isNeutral {
            switch operation.kind {
            case .timeRange:
                start = Int64((operation.number("start") * 1e6).rounded())
                end = Int64((operation.number("end") * 1e6).rounded())
            case .speed: speed *= operation.number()
            case .volume: volume *= operation.number()
            default: break
            }
        }
        // As the editor renders it.
        speed = min(VideoEdit.speeds.upperBound, max(VideoEdit.speeds.lowerBound, speed))
        volume = min(VideoEdit.volumes.upperBound, max(VideoEdit.volumes.lowerBound, volume))
    }

    /// True if it keeps the times of the original, so that slow motion is preserved.
    var keepsTimes: Bool { start == 0 && end == nil && speed == 1 }
}
