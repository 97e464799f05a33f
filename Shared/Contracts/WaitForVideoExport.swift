public import JSONValue

/// `video.exportStatus`: how far an export is, at once or when it ends (S-60).
public struct WaitForVideoExport: Request {
    public static let method = "video.exportStatus"
    /// The longest `wait` in milliseconds.
    public static let longestWait = 20_000
    /// The name of the export.
    public var export: String
    /// Milliseconds to wait for its end.
    public var wait: Int

    public init(export: String, wait: Int = 0) {
        self.export = export
        self.wait = wait
    }

    public static let table = parameters(
        "How far an export is. Renews its lease.",
        blank: WaitForVideoExport(export: ""),
        [
            .required("export", \.export, .text(maxBytes: 64), "Name of the export, from video.export."),
            .defaulted(
                "wait",
                \.wait,
                .count(0...longestWait),
                "Milliseconds to wait for its end; the response comes earlier if it ends.",
                default: 0
            ),
        ]
    )

    public typealias Result = VideoExportStatus
}
