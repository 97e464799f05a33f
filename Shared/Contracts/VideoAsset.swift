public import JSONValue
public import PhotoModel

/// `video.asset`: how a video is composed, `requestAVAssetForVideo` (S-61).
///
/// The response has the tracks of the file that is shown, with the segments of their edit lists; the speeds at which
/// its parts are shown; the volume of its sound; and the files from which it comes. All times are microseconds.
public struct VideoAsset: Request {
    public static let method = "video.asset"
    /// The video, or a Live Photo, whose paired video is described.
    public var asset: ObjectID
    /// The video with or without edits.
    public var version: VideoVersion
    /// True if the original may be downloaded from remote storage.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(asset: ObjectID, version: VideoVersion = .current, atLeast: ChangeToken? = nil) {
        self.asset = asset
        self.version = version
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Returns how a video is composed: tracks with their segments, time map, volume of the sound, and source files.",
        blank: VideoAsset(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "version",
                \.version,
                .name(VideoVersion.self),
                "The video with or without edits.",
                default: .current
            ),
            .networkAccess(\.isNetworkAccessAllowed),
            .atLeast(\.atLeast),
        ]
    )

    /// A part of a source that is shown at a time.
    public struct Segment: JSONTabled {
        /// The time at which it is shown, in microseconds.
        public var start: Int64
        /// The time for which it is shown, in microseconds.
        public var duration: Int64
        /// The time at which it begins in the source, in microseconds; nil for a gap.
        public var sourceStart: Int64?
        /// Its length in the source, in microseconds.
        public var sourceDuration: Int64
        /// The speed, as a multiple of that of the source.
        public var rate: Double

        public init(start: Int64, duration: Int64, sourceStart: Int64?, sourceDuration: Int64, rate: Double) {
            self.start = start
            self.duration = duration
            self.sourceStart = sourceStart
            self.sourceDuration = sourceDuration
            self.rate = rate
        }

        public static let table = JSONTable(
            "VideoSegment",
            "A part of a source and when it is shown. Times are microseconds.",
            unknown: .ignored,
            blank: Segment(start: 0, duration: 0, sourceStart: nil, sourceDuration: 0, rate: 1),
            [
                .required("start", \.start, .integer(0...Int64.max), "The time at which it is shown."),
                .required("duration", \.duration, .integer(0...Int64.max), "The time for which it is shown."),
                .optional(
                    "sourceStart",
                    \.sourceStart,
                    .integer(0...Int64.max),
                    "The time at which it begins in the source; absent for a gap."
                ),
                .required("sourceDuration", \.sourceDuration, .integer(0...Int64.max), "Its length in the source."),
                .required("rate", \.rate, .number(-1000...1000), "The speed, as a multiple of the source's."),
            ]
        )
    }

    /// A track of the file that is shown.
    public struct Track: JSONTabled {
        /// Its identifier in the file.
        public var id: Int64 = 0
        /// Codec and size.
        public var media = VideoPlayback.Track()
        /// True if this is the video track that is shown, or the audio track that is played.
        public var isShown = false
        /// False if the file marks the track as disabled.
        public var isEnabled = true
        /// The time at which it begins, in microseconds.
        public var start: Int64 = 0
        /// Its length in microseconds.
        public var duration: Int64 = 0
        /// The number of frames or packets in the file's index; 0 if unknown.
        public var frameCount: Int64 = 0
        /// The edit list, or one segment of the whole track.
        public var segments: [Segment] = []

        public init() {}

        /// The maximum number of segments of a track that are returned.
        public static let maxSegments = 1024

        public static let table = JSONTable(
            "VideoAssetTrack",
            "A track of a video file. Times are microseconds.",
            unknown: .ignored,
            blank: Track(),
            [
                .required("id", \.id, .integer(Int64.min...Int64.max), "Its identifier in the file."),
                .required("media", \.media, .object(VideoPlayback.Track.self), "Codec and size."),
                .required(
                    "isShown",
                    \.isShown,
                    .flag,
                    "True if it is the video or the audio track that players present."
                ),
                .required("isEnabled", \.isEnabled, .flag, "False if the file marks the track as disabled."),
                .required("start", \.start, .integer(Int64.min...Int64.max), "The time at which it begins."),
                .required("duration", \.duration, .integer(0...Int64.max), "Its length."),
                .defaulted(
                    "frameCount",
                    \.frameCount,
                    .integer(0...Int64.max),
                    "The number of frames or packets in the file's index; 0 if unknown.",
                    default: 0
                ),
                .required(
                    "segments",
                    \.segments,
                    .list(of: .object(Segment.self), limit: maxSegments),
                    "Its edit list, or one segment of the whole track."
                ),
            ]
        )
    }

    /// A point of the volume's curve. Between points, the volume changes linearly.
    public struct Volume: JSONTabled {
        /// The time in the video as it is shown, in microseconds.
        public var time: Int64
        /// 1 is the volume of the source.
        public var volume: Double

        public init(time: Int64, volume: Double) { (self.time, self.volume) = (time, volume) }

        public static let table = JSONTable(
            "VideoVolume",
            "A point of the curve of the sound's volume.",
            unknown: .ignored,
            blank: Volume(time: 0, volume: 1),
            [
                .required("time", \.time, .integer(0...Int64.max), "The time in the video as shown, in microseconds."),
                .required("volume", \.volume, .number(0...1000), "1 is the volume of the source."),
            ]
        )
    }

    /// The composition of a video.
    public struct Result: JSONTabled {
        /// The asset.
        public var asset: ObjectID
        /// Content revision of the video.
        public var contentRevision = Revision(0)
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64 = 0
        /// The file that is shown; its tracks are those below.
        public var resource: AssetResource
        /// The duration of the video with the speeds of the time map, in microseconds.
        public var duration: Int64 = 0
        /// The time in the video, in microseconds, at which a Live Photo's still was taken; nil if the video does not
        /// contain it.
        public var photoTime: Int64?
        /// The tracks of ``resource``.
        public var tracks: [Track] = []
        /// The speeds of the source's parts: one segment if it is the same everywhere.
        public var timeMap: [Segment] = []
        /// The volume of the sound, relative to that of the source.
        public var audioCurve: [Volume] = []
        /// True if an edit has rendered the time map and the volume into the file; its source is then the last of
        /// ``sources``. False if players and exports have to apply them.
        public var isRendered = false
        /// The files: the one that is shown, then the original of an edit.
        public var sources: [AssetResource] = []

        public init(asset: ObjectID, resource: AssetResource) {
            self.asset = asset
            self.resource = resource
        }

        public static let table = JSONTable(
            "VideoAsset",
            "The composition of a video. Times are microseconds.",
            unknown: .ignored,
            blank: Result(asset: .none, resource: AssetResource(type: .video, digest: "", size: 0, contentType: "")),
            [
                .asset(\.asset),
                .required("contentRevision", \.contentRevision, .revision, "Content revision of the video."),
                .sequence(\.sequence),
                .required("resource", \.resource, .object(AssetResource.self), "The file that is shown."),
                .required(
                    "duration",
                    \.duration,
                    .integer(0...Int64.max),
                    "The duration of the video with the speeds of the time map."
                ),
                .optional(
                    "photoTime",
                    \.photoTime,
                    .integer(0...Int64.max),
                    "The time at which a Live Photo's still was taken, if the video contains it."
                ),
                .required("tracks", \.tracks, .list(of: .object(Track.self), limit: 64), "The tracks of the file."),
                .required(
                    "timeMap",
                    \.timeMap,
                    .list(of: .object(Segment.self), limit: 64),
                    "The speeds of the source's parts, for example of slow motion."
                ),
                .required(
                    "audioCurve",
                    \.audioCurve,
                    .list(of: .object(Volume.self), limit: 64),
                    "The volume of the sound, relative to that of the source."
                ),
                .required(
                    "isRendered",
                    \.isRendered,
                    .flag,
                    "True if an edit has rendered the time map and the volume into the file; its source is then the "
                        + "last of `sources`. False if players and exports have to apply them."
                ),
                .required(
                    "sources",
                    \.sources,
                    .list(of: .object(AssetResource.self), limit: 4),
                    "The file that is shown, then the original of an edit."
                ),
            ]
        )
    }
}
