public import JSONValue
import PhotoModel

/// `upload.begin`: begins an upload of a file that is larger than an attachment.
public struct BeginUpload: Request {
    public static let method = "upload.begin"
    /// The size of the file in bytes, nil if unknown. A size above the quota is refused at once.
    public var size: Int64?

    public static let chunkBytes = 1 << 20

    public init(size: Int64? = nil) { self.size = size }

    public static let table = parameters(
        "Begins an upload; its lease is ten minutes, renewed by each append.",
        blank: BeginUpload(),
        [
            .optional(
                "size",
                \.size,
                .integer(0...Int64.max),
                "Size of the file in bytes, if known; then an upload of more or fewer is refused."
            )
        ]
    )

    public struct Result: JSONTabled {
        /// Id of the upload.
        public var upload: String
        /// Maximum bytes per append.
        public var chunkBytes: Int

        public init(upload: String, chunkBytes: Int = BeginUpload.chunkBytes) {
            self.upload = upload
            self.chunkBytes = chunkBytes
        }

        public static let table = JSONTable(
            "Upload",
            "An open upload.",
            unknown: .ignored,
            blank: Result(upload: ""),
            [
                .required("upload", \.upload, .text(maxBytes: 64), "Id of the upload."),
                .required("chunkBytes", \.chunkBytes, .count(1...BeginUpload.chunkBytes), "Maximum bytes per append."),
            ]
        )
    }
}
