public import JSONValue
import PhotoModel

/// `upload.finish`: completes an upload. Its bytes are durable when the response arrives.
public struct FinishUpload: Request {
    public static let method = "upload.finish"
    /// Id of the upload.
    public var upload: String
    /// SHA-256 that the bytes must have; nil if the client does not know it.
    public var digest: String?
    /// True if a file that the library already has for these bytes is read and compared, and replaced if it is damaged.
    public var verifies: Bool

    public init(upload: String, digest: String? = nil, verifies: Bool = false) {
        self.upload = upload
        self.digest = digest
        self.verifies = verifies
    }

    public static let table = parameters(
        "Completes an upload, so that a change request can use it.",
        blank: FinishUpload(upload: ""),
        [
            .required("upload", \.upload, .text(maxBytes: 64), "Id of the upload."),
            .optional("digest", \.digest, .text(maxBytes: 64), "SHA-256 that the bytes must have."),
            .defaulted(
                "verify",
                \.verifies,
                .flag,
                "If the library has the bytes, compare its file with them, and replace it if it is damaged.",
                default: false
            ),
        ]
    )

    public struct Result: JSONTabled {
        /// Its name.
        public var upload: String
        /// SHA-256 of the bytes.
        public var digest: String
        /// Size in bytes.
        public var size: Int64
        /// True if the bytes replaced a stored file that was damaged.
        public var isHealed: Bool

        public init(upload: String, digest: String, size: Int64, isHealed: Bool = false) {
            self.upload = upload
            self.digest = digest
            self.size = size
            self.isHealed = isHealed
        }

        public static let table = JSONTable(
            "FinishedUpload",
            "A complete upload.",
            unknown: .ignored,
            blank: Result(upload: "", digest: "", size: 0),
            [
                .required("upload", \.upload, .text(maxBytes: 64), "Its name."),
                .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes."),
                .required("size", \.size, .integer(0...Int64.max), "Size in bytes."),
                .defaulted(
                    "healed",
                    \.isHealed,
                    .flag,
                    "True if the bytes replaced a stored file that was damaged.",
                    default: false
                ),
            ]
        )
    }
}
