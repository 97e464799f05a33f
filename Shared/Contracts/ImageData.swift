public import JSONValue
public import PhotoModel

/// `image.data`: the stored bytes of the largest representation of an asset (S-52, T-46).
///
/// For an asset without edits these are the imported bytes. To read a large file with a REQ socket, or a file in
/// parts, use `resource.read` of the catalog.
public struct ImageData: Request {
    public static let method = "image.data"
    /// The asset.
    public var asset: ObjectID
    /// The image with or without edits.
    public var version: ImageVersion
    /// True if the original may be downloaded from remote storage.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(asset: ObjectID, version: ImageVersion = .current, atLeast: ChangeToken? = nil) {
        self.asset = asset
        self.version = version
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The bytes of the largest representation of an asset.",
        blank: ImageData(asset: .none),
        [
            .asset(\.asset),
            .version(\.version),
            .defaulted(
                "networkAccessAllowed",
                \.isNetworkAccessAllowed,
                .flag,
                "True if the original may be downloaded from remote storage.",
                default: false
            ),
            .atLeast(\.atLeast),
        ]
    )

    /// The description of the attached bytes.
    public struct Result: JSONTabled {
        /// The asset.
        public var asset: ObjectID
        /// Content revision of the bytes.
        public var contentRevision: Revision
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64
        /// SHA-256 of the bytes.
        public var digest: String
        /// Size in bytes.
        public var size: Int64
        /// Uniform type identifier.
        public var contentType: String
        /// Media type.
        public var mimeType: String
        /// EXIF orientation of the file, 1...8; 1 if there is none, or if decoders of the format apply it themselves.
        public var orientation: Int
        /// Width in pixels as displayed; 0 if unknown.
        public var pixelWidth: Int
        /// Height in pixels as displayed; 0 if unknown.
        public var pixelHeight: Int
        /// True if the original is in remote storage and network access was not allowed.
        public var isInCloud = false

        public init(
            asset: ObjectID,
            contentRevision: Revision,
            sequence: Int64,
            digest: String,
            size: Int64,
            contentType: String,
            mimeType: String,
            orientation: Int,
            pixelWidth: Int,
            pixelHeight: Int
        ) {
            self.asset = asset
            self.contentRevision = contentRevision
            self.sequence = sequence
            self.digest = digest
            self.size = size
            self.contentType = contentType
            self.mimeType = mimeType
            self.orientation = orientation
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
        }

        public static let table = JSONTable(
            "ImageBytes",
            "Description of the attached bytes.",
            unknown: .ignored,
            blank: Result(
                asset: .none,
                contentRevision: Revision(0),
                sequence: 0,
                digest: "",
                size: 0,
                contentType: "",
                mimeType: "",
                orientation: 1,
                pixelWidth: 0,
                pixelHeight: 0
            ),
            [
                .asset(\.asset),
                .required("contentRevision", \.contentRevision, .revision, "Content revision of the bytes."),
                .sequence(\.sequence),
                .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes."),
                .required("size", \.size, .integer(0...Int64.max), "Size in bytes."),
                .required("contentType", \.contentType, .text(maxBytes: 128), "Uniform type identifier."),
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type."),
                .required("orientation", \.orientation, .count(1...8), "EXIF orientation of the file."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels as displayed; 0 if unknown."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Pixels as displayed; 0 if unknown."),
                .defaulted(
                    "isInCloud",
                    \.isInCloud,
                    .flag,
                    "The original is in remote storage, and network access was not allowed.",
                    default: false,
                    isWritten: true
                ),
            ]
        )
    }
}
