import Contracts
import ImageFormats
import JSONValue
import Video

/// The tracks of a video file and their timing, as a worker reports them.
struct VideoStructure: Sendable, JSONTabled {
    var tracks: [VideoAsset.Track] = []
    /// Microseconds.
    var duration: Int64 = 0
    /// The time of a Live Photo's still, in microseconds; nil if there is none.
    var photoTime: Int64?
    /// The parts of a slow-motion video with their speeds; empty for others.
    var slowMotion: [VideoAsset.Segment] = []

    init() {}

    static let table = JSONTable(
        "VideoStructure",
        "A worker's description of the tracks of a video file.",
        unknown: .ignored,
        blank: VideoStructure(),
        [
            .required("tracks", \.tracks, .list(of: .object(VideoAsset.Track.self), limit: 64), "The tracks."),
            .required("duration", \.duration, .integer(0...Int64.max), "Microseconds."),
            .optional("photoTime", \.photoTime, .integer(0...Int64.max), "The time of the still."),
            .required(
                "slowMotion",
                \.slowMotion,
                .list(of: .object(VideoAsset.Segment.self), limit: 64),
                "The speeds of slow motion."
            ),
        ]
    )

    /// - Parameters:
    ///   - boxes: the tracks as the container's boxes describe them; empty for containers without boxes
    ///   - audioTrack: the index of the audio track that players choose; nil if there is none
    init(_ info: VideoInfo, _ boxes: [MovieTrack], audioTrack: Int?) {
        duration = info.duration
        photoTime = MovieTrack.stillTime(boxes)
        slowMotion = VideoTimeMap(slowMotion: info)?.segments ?? []
        let described = VideoDescription(info).tracks
        for (index, (media, track)) in zip(described, info.tracks).enumerated() {
            var result = VideoAsset.Track()
            result.id = Int64(track.id)
            result.media = media
            result.isShown = index == info.shownTrack || index == audioTrack
            result.start = track.start
            // Matroska has one duration for all tracks.
            result.duration = track.duration > 0 ? track.duration : info.duration
            result.frameCount = track.frameCount
            let box = boxes.first { $0.id == track.id }
            result.isEnabled = box?.isEnabled ?? true
            result.segments = box.flatMap(Self.segments) ?? []
            if result.segments.isEmpty {
                result.segments = [
                    VideoAsset.Segment(
                        start: max(0, track.start),
                        duration: result.duration,
                        sourceStart: 0,
                        sourceDuration: result.duration,
                        rate: 1
                    )
                ]
            }
            tracks.append(result)
        }
    }

    private static func segments(_ track: MovieTrack) -> [VideoAsset.Segment] {
        var (segments, time): ([VideoAsset.Segment], Int64) = ([], 0)
        for edit in track.edits.prefix(VideoAsset.Track.maxSegments) {
            // An edit of duration 0 lasts until the end of the media, as in fragmented files.
            let remaining = max(0, track.mediaDuration - (edit.mediaStart ?? 0))
            let duration = edit.duration == 0 && edit.mediaStart != nil ? remaining : edit.duration
            let rate = edit.mediaStart == nil ? 1 : min(1000, max(-1000, edit.rate))
            segments.append(
                VideoAsset.Segment(
                    start: time,
                    duration: duration,
                    sourceStart: edit.mediaStart,
                    sourceDuration: edit.mediaStart == nil ? 0 : Int64(Double(duration) * abs(rate)),
                    rate: rate
                )
            )
            time += duration
        }
        return segments
    }
}

extension VideoTimeMap {
    /// The parts, with the times at which they are played.
    var segments: [VideoAsset.Segment] {
        var time: Int64 = 0
        return parts.map { part in
            defer { time += part.playbackDuration }
            return VideoAsset.Segment(
                start: time,
                duration: part.playbackDuration,
                sourceStart: part.start,
                sourceDuration: part.duration,
                rate: part.rate
            )
        }
    }
}
