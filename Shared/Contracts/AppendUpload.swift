public import JSONValue
import PhotoModel

/// `upload.append`: appends the bytes of the only attachment.
public struct AppendUpload: Request {
    public static let method = "upload.append"
    /// Id of the upload.
    public var upload: String
    /// Offset of these bytes in the file. A repeated append succeeds again; an append that leaves a gap is refused.
    public var offset: Int64

    public init(upload: String, offset: Int64) {
        self.upload = upload
        self.offset = offset
    }

    public static let table = parameters(
        "Appends the attachment to an upload.",
        blank: AppendUpload(upload: "", offset: 0),
        [
            .required("upload", \.upload, .text(maxBytes: 64), "Id of the upload."),
            .required(
                "offset",
                \.offset,
                .integer(0...Int64.max),
                "Offset of these bytes in the file: the bytes received so far, or those of bytes that are sent again."
            ),
        ]
    )

    public struct Result: JSONTabled {
        /// Bytes received so far.
        public var size: Int64
        public init(size: Int64) { self.size = size }
        public static let table = JSONTable(
            "UploadSize",
            "Bytes received so far.",
            unknown: .ignored,
            blank: Result(size: 0),
            [.required("size", \.size, .integer(0...Int64.max), "Bytes received so far.")]
        )
    }
}
