public import JSONValue
public import PhotoModel

/// `video.export`: encodes a video anew in a size and format, `requestExportSessionForVideo` (S-60).
///
/// The response names an export that continues: `video.exportStatus` waits for it and returns its progress, and
/// `video.cancelExport` ends it. When it is done, its `stream` is read with `video.read`. An export that nobody asks for
/// during ``leaseSeconds`` is cancelled, or its file may be removed. Equal requests share one file. It is upright and has
/// the tags of the original, such as date, place and camera.
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
/// Videos are made smaller to fit into the size, which is turned for upright ones, and are never enlarged.
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
