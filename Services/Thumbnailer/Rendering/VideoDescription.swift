import Contracts
import JSONValue
import Video

/// The properties of a video file, as a worker reports them.
struct VideoDescription: Sendable, JSONTabled {
    var mimeType = ""
    var duration: Int64 = 0
    var pixelWidth = 0
    var pixelHeight = 0
    var rotation = 0.0
    var frameRate = 0.0
    var isHDR = false
    var primaries = ""
    var transfer = ""
    var matrix = ""
    var tracks: [VideoPlayback.Track] = []
    var isFastStart = false
    /// The positions to which and from which the index is moved; nil if it is not moved.
    var movedTo: Int?
    var movedFrom: Int?

    init() {}

    static let table = JSONTable(
        "VideoDescription",
        "A worker's description of a video file.",
        unknown: .ignored,
        blank: VideoDescription(),
        [
            .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type."),
            .required("duration", \.duration, .integer(0...Int64.max), "Microseconds."),
            .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels as displayed."),
            .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Pixels as displayed."),
            .required("rotation", \.rotation, .number(0...360), "Degrees clockwise."),
            .required("frameRate", \.frameRate, .number(0...1e9), "Frames per second."),
            .required("isHDR", \.isHDR, .flag, "High dynamic range."),
            .required("primaries", \.primaries, .text(maxBytes: 64), "FFmpeg's name."),
            .required("transfer", \.transfer, .text(maxBytes: 64), "FFmpeg's name."),
            .required("matrix", \.matrix, .text(maxBytes: 64), "FFmpeg's name."),
            .required("tracks", \.tracks, .list(of: .object(VideoPlayback.Track.self), limit: 64), "The tracks."),
            .required("isFastStart", \.isFastStart, .flag, "True if a player can begin before it has all bytes."),
            .optional("movedTo", \.movedTo, .count(0...Int.max), "Where the index is inserted."),
            .optional("movedFrom", \.movedFrom, .count(0...Int.max), "Where the index is."),
        ]
    )

    init(_ info: VideoInfo) {
        mimeType = info.mimeType
        duration = info.duration
        pixelWidth = info.pixelWidth
        pixelHeight = info.pixelHeight
        rotation = info.rotation
        frameRate = info.frameRate.isFinite ? min(info.frameRate, 1e9) : 0
        isHDR = info.isHDR
        primaries = info.primaries
        transfer = info.transfer
        matrix = info.matrix
        tracks = info.tracks.prefix(64).map { track in
            var result = VideoPlayback.Track()
            result.kind = track.kind.rawValue
            result.codec = track.codec
            result.profile = track.profile
            result.tag = track.tag
            result.isPicture = track.isPicture
            result.bitRate = track.bitRate
            result.pixelWidth = min(1_000_000, track.pixelWidth)
            result.pixelHeight = min(1_000_000, track.pixelHeight)
            result.bitDepth = min(64, track.bitDepth)
            result.frameRate = track.frameRate.isFinite ? min(track.frameRate, 1e9) : 0
            result.sampleRate = min(1_000_000_000, track.sampleRate)
            result.channels = min(1024, track.channels)
            result.language = track.language.flatMap { $0.utf8.count <= 64 ? $0 : nil }
            return result
        }
    }
}
