public import JSONValue
import PhotoModel

/// `upload.begin`: begins an upload of a file that is larger than an attachment.
public struct BeginUpload: Request {
    public static let method = "upload.begin"
    /// The size of the file in bytes, nil if unknown. A size above the quota is refused at once.
    public var size: Int64?

    /// The maximum number of bytes of an append.
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

    /// An open upload.
    public struct Result: JSONTabled {
        /// Id of the upload.
        public var upload: String
        /// The maximum number of bytes of an append.
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

    /// The bytes received so far.
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

    /// A complete upload.
    public struct Result: JSONTabled {
        /// Id of the upload.
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
