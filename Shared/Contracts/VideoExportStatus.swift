public import JSONValue
public import PhotoModel

/// How far an export of `video.export` is (S-60).
public struct VideoExportStatus: JSONTabled {
    /// The name of the export for `video.exportStatus` and `video.cancelExport`.
    public var export: String
    /// The video.
    public var asset: ObjectID
    public var state: VideoExportState
    public var preset: VideoExportPreset
    /// Microseconds of the output that are made.
    public var done: Int64 = 0
    /// Microseconds of the whole output.
    public var duration: Int64 = 0
    /// Why it failed: name and message.
    public var error: JSONObject?
    /// The name of the finished file as a stream for `video.read`.
    public var stream: String?
    /// Bytes of the finished file.
    public var size: Int64 = 0
    /// Media type of the file.
    public var mimeType = ""
    /// Pixels of the finished file.
    public var pixelWidth = 0
    public var pixelHeight = 0

    public init(export: String, asset: ObjectID, state: VideoExportState, preset: VideoExportPreset) {
        self.export = export
        self.asset = asset
        self.state = state
        self.preset = preset
    }

    public static let table = JSONTable(
        "VideoExport",
        "How far an export is.",
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
            .required("done", \.done, .integer(0...Int64.max), "Microseconds of the output that are made."),
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

    /// True if nothing changes any more.
    public var isFinal: Bool { self != .waiting && self != .running }
}
