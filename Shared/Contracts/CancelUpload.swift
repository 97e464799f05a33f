public import JSONValue
import PhotoModel

/// `upload.cancel`: discards an upload.
public struct CancelUpload: Request {
    public typealias Result = EmptyResult
    public static let method = "upload.cancel"
    /// Id of the upload.
    public var upload: String
    public init(upload: String) { self.upload = upload }
    public static let table = parameters(
        "Discards an upload.",
        blank: CancelUpload(upload: ""),
        [.required("upload", \.upload, .text(maxBytes: 64), "Id of the upload.")]
    )
}
