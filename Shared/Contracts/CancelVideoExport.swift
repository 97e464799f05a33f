public import JSONValue

/// `video.cancelExport`: ends an export. Equal exports of others continue (S-60).
public struct CancelVideoExport: Request {
    public static let method = "video.cancelExport"
    /// The name of the export.
    public var export: String

    public init(export: String) { self.export = export }

    public static let table = parameters(
        "Ends an export, or gives up its finished file.",
        blank: CancelVideoExport(export: ""),
        [.required("export", \.export, .text(maxBytes: 64), "Name of the export, from video.export.")]
    )

    public typealias Result = EmptyResult
}
