public import JSONValue
public import PhotoModel

/// `resource.read`: the bytes of a resource (T-31, T-32).
///
/// A REQ client, or a request without credit, gets one response with up to 8 MiB from `offset` as its attachment. With
/// credit, `resource.chunk {offset}` notifications with an attachment each precede the response.
public struct ReadResource: Request {
    public static let method = "resource.read"
    public static let notification = "resource.chunk"
    public static let maxReplyBytes = 8 << 20
    public static let chunkBytes = 1 << 20
    /// The asset.
    public var asset: ObjectID
    /// Type of the resource.
    public var type: ResourceType
    /// Offset of the first byte.
    public var offset: Int64
    /// Number of bytes; nil: to the end.
    public var length: Int64?

    public init(asset: ObjectID, type: ResourceType, offset: Int64 = 0, length: Int64? = nil) {
        self.asset = asset
        self.type = type
        self.offset = offset
        self.length = length
    }

    public static let table = parameters(
        "The bytes of a resource, whole or in part.",
        blank: ReadResource(asset: .none, type: .photo),
        [
            .asset(\.asset),
            .defaulted("type", \.type, .name(ResourceType.self), "Type of the resource.", default: .photo),
            .defaulted("offset", \.offset, .integer(0...Int64.max), "Offset of the first byte.", default: 0),
            .optional("length", \.length, .integer(0...Int64.max), "Number of bytes; absent: to the end."),
        ]
    )

    public struct Result: JSONTabled {
        /// The resource, with its digest.
        public var resource: AssetResource
        /// Offset of the first byte delivered.
        public var offset: Int64
        /// Number of bytes delivered, from `offset`.
        public var length: Int64

        public init(resource: AssetResource, offset: Int64, length: Int64) {
            self.resource = resource
            self.offset = offset
            self.length = length
        }

        public static let table = JSONTable(
            "ResourceBytes",
            "The delivered range of a resource.",
            unknown: .ignored,
            blank: Result(
                resource: AssetResource(type: .photo, digest: "", size: 0, contentType: ""),
                offset: 0,
                length: 0
            ),
            [
                .required("resource", \.resource, .object(AssetResource.self), "The resource, with its digest."),
                .required("offset", \.offset, .integer(0...Int64.max), "Offset of the first byte delivered."),
                .required("length", \.length, .integer(0...Int64.max), "Number of bytes delivered."),
            ]
        )
    }
}

/// `resource.supports`: whether an asset can be created from files of some types (T-20).
public struct SupportsResources: Request {
    public static let method = "resource.supports"
    /// One type for each file.
    public var types: [ResourceType]

    public init(types: [ResourceType]) { self.types = types }

    public static let table = parameters(
        "Whether a new asset can have resources of these types.",
        blank: SupportsResources(types: []),
        [.required("types", \.types, .list(of: .name(ResourceType.self), limit: 64), "One type for each file.")]
    )

    public struct Result: JSONTabled {
        /// True if an asset can be created from them.
        public var isSupported: Bool

        public init(isSupported: Bool) { self.isSupported = isSupported }

        public static let table = JSONTable(
            "Supported",
            "Whether an asset can be created from them.",
            unknown: .ignored,
            blank: Result(isSupported: false),
            [.required("isSupported", \.isSupported, .flag, "Whether an asset can be created from them.")]
        )
    }
}

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
        [.optional("size", \.size, .integer(0...Int64.max), "Size of the file in bytes, if known.")]
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
            .required("offset", \.offset, .integer(0...Int64.max), "Offset of these bytes in the file."),
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
                    "Whether the bytes replaced a stored file that was damaged.",
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
