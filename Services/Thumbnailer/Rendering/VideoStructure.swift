import Contracts
import ImageFormats
import JSONValue
import Video

/// The composition of a video file, as a worker reports it.
struct VideoStructure: Sendable, JSONTabled {
    var tracks: [VideoAsset.Track] = []
    /// Microseconds.
    var duration: Int64 = 0
    var photoTime: Int64?
    /// The speeds of the parts of a video in slow motion; empty for others.
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
    ///   - boxes: the tracks by the container's own boxes; empty for containers without them
    ///   - sound: the index of the sound track that is heard; nil if there is none
    init(_ info: VideoInfo, _ boxes: [MovieTrack], sound: Int?) {
        duration = info.duration
        photoTime = MovieTrack.stillTime(boxes)
        slowMotion = VideoTimeMap(slowMotion: info)?.segments ?? []
        let described = VideoDescription(info).tracks
        for (index, (media, track)) in zip(described, info.tracks).enumerated() {
            var result = VideoAsset.Track()
            result.id = Int64(track.id)
            result.media = media
            result.isShown = index == info.shownTrack || index == sound
            result.start = track.start
            // Matroska has one duration for all.
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
            // An edit without a length lasts until the end of the media, as in fragmented files.
            let rest = max(0, track.mediaDuration - (edit.mediaStart ?? 0))
            let duration = edit.duration == 0 && edit.mediaStart != nil ? rest : edit.duration
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
    /// The parts, with the times at which they are shown.
    var segments: [VideoAsset.Segment] {
        var time: Int64 = 0
        return parts.map { part in
            defer { time += part.shown }
            return VideoAsset.Segment(
                start: time,
                duration: part.shown,
                sourceStart: part.start,
                sourceDuration: part.duration,
                rate: part.rate
            )
        }
    }
}
