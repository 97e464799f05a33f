public import JSONValue
public import PhotoModel

/// `video.export`: encodes a video anew in a size and format, `requestExportSessionForVideo` (S-60).
///
/// The response names an export that continues: `video.exportStatus` waits for it and returns its progress, and
/// `video.cancelExport` ends it. When it is done, its `stream` is read with `video.read`. An export that no request
/// names for ``leaseSeconds`` is cancelled, or its file may be removed. Equal requests share one file. It is upright
/// and has the tags of the original, such as date, place and camera.
///
/// A video in remote storage is downloaded before the response, with `resource.progress` notifications.
public struct ExportVideo: Request {
    public static let method = "video.export"
    /// The time from the last request about an export to its end, in seconds.
    public static let leaseSeconds = 120
    /// The video, or a Live Photo, whose paired video is exported.
    public var asset: ObjectID
    /// The size and the encoder.
    public var preset: VideoExportPreset
    /// The video with or without edits.
    public var version: VideoVersion
    /// True if the video may be downloaded from remote storage.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        asset: ObjectID,
        preset: VideoExportPreset,
        version: VideoVersion = .current,
        atLeast: ChangeToken? = nil
    ) {
        self.asset = asset
        self.preset = preset
        self.version = version
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Encodes a video anew; the export continues after the response. It is cancelled if no request names it for "
            + "\(leaseSeconds) s.",
        blank: ExportVideo(asset: .none, preset: .highest),
        [
            .asset(\.asset),
            .required("preset", \.preset, .name(VideoExportPreset.self), "Size and encoder of the file."),
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

    public typealias Result = VideoExportStatus
}

/// The size and encoder of an exported video (`AVAssetExportPreset…`).
///
/// Videos are scaled down to fit into the size, whose sides are swapped for upright videos. They are never enlarged.
public enum VideoExportPreset: String, Sendable, Hashable, CaseIterable {
    /// The tracks as they are, in an MPEG-4 file.
    case passthrough
    case size640x480 = "640x480"
    case size960x540 = "960x540"
    case size1280x720 = "1280x720"
    case size1920x1080 = "1920x1080"
    case size3840x2160 = "3840x2160"
    case low, medium, highest
    case hevc1920x1080, hevc3840x2160, hevcHighest
}

/// `video.exportStatus`: the progress of an export, at once or when it ends (S-60).
public struct WaitForVideoExport: Request {
    public static let method = "video.exportStatus"
    /// The maximum of `wait`, in milliseconds.
    public static let maxWait = 20_000
    /// The name of the export.
    public var export: String
    /// Milliseconds to wait for its end.
    public var wait: Int

    public init(export: String, wait: Int = 0) {
        self.export = export
        self.wait = wait
    }

    public static let table = parameters(
        "The progress of an export. Renews its lease.",
        blank: WaitForVideoExport(export: ""),
        [
            .required("export", \.export, .text(maxBytes: 64), "Name of the export, from video.export."),
            .defaulted(
                "wait",
                \.wait,
                .count(0...maxWait),
                "Milliseconds to wait for its end; the response comes earlier if it ends.",
                default: 0
            ),
        ]
    )

    public typealias Result = VideoExportStatus
}

/// `video.cancelExport`: ends an export. Equal exports of others continue (S-60).
public struct CancelVideoExport: Request {
    public static let method = "video.cancelExport"
    /// The name of the export.
    public var export: String

    public init(export: String) { self.export = export }

    public static let table = parameters(
        "Ends an export, or releases its finished file.",
        blank: CancelVideoExport(export: ""),
        [.required("export", \.export, .text(maxBytes: 64), "Name of the export, from video.export.")]
    )

    public typealias Result = EmptyResult
}

/// The progress of an export of `video.export` (S-60).
public struct VideoExportStatus: JSONTabled {
    /// The name of the export for `video.exportStatus` and `video.cancelExport`.
    public var export: String
    /// The video.
    public var asset: ObjectID
    /// The state of the export.
    public var state: VideoExportState
    /// The size and the encoder.
    public var preset: VideoExportPreset
    /// Microseconds of the output that are encoded.
    public var done: Int64 = 0
    /// Microseconds of the whole output.
    public var duration: Int64 = 0
    /// The error with which it failed: name and message; nil if it did not.
    public var error: JSONObject?
    /// The name of the finished file as a stream for `video.read`; nil before the end.
    public var stream: String?
    /// Bytes of the finished file.
    public var size: Int64 = 0
    /// Media type of the file.
    public var mimeType = ""
    /// Width of the finished file in pixels.
    public var pixelWidth = 0
    /// Height of the finished file in pixels.
    public var pixelHeight = 0

    public init(export: String, asset: ObjectID, state: VideoExportState, preset: VideoExportPreset) {
        self.export = export
        self.asset = asset
        self.state = state
        self.preset = preset
    }

    public static let table = JSONTable(
        "VideoExport",
        "The progress of an export.",
        unknown: .ignored,
        blank: VideoExportStatus(export: "", asset: .none, state: .waiting, preset: .highest),
        [
            .required("export", \.export, .text(maxBytes: 64), "Name of the export."),
            .asset(\.asset),
            .required(
                "state",
                \.state,
                .name(VideoExportState.self),
                "waiting for others, running, done, failed or cancelled."
            ),
            .required("preset", \.preset, .name(VideoExportPreset.self), "Size and encoder of the file."),
            .required("done", \.done, .integer(0...Int64.max), "Microseconds of the output that are encoded."),
            .required("duration", \.duration, .integer(0...Int64.max), "Microseconds of the whole output."),
            .optional("error", \.error, .members, "The cause of its failure: name and message."),
            .optional("stream", \.stream, .text(maxBytes: 128), "Name of the finished file for video.read."),
            .defaulted("size", \.size, .integer(0...Int64.max), "Bytes of the finished file.", default: 0),
            .defaulted("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the finished file.", default: ""),
            .defaulted("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels of the finished file.", default: 0),
            .defaulted("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Pixels of the finished file.", default: 0),
        ]
    )
}

/// The state of an export.
public enum VideoExportState: String, Sendable, Hashable, CaseIterable {
    case waiting, running, done, failed, cancelled

    /// True if the state does not change any more.
    public var isFinal: Bool { self != .waiting && self != .running }
}
