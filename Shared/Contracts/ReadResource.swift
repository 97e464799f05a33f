public import JSONValue
public import PhotoModel

/// `resource.read`: the bytes of a resource (T-31, T-32).
///
/// A REQ client, or a request without credit, gets one response with all requested bytes as its attachment. More than
/// ``maxReplyBytes`` are refused as `limit_exceeded`; they are read in ranges, by `offset` and `length`, or with
/// credit: then `resource.chunk {offset}` notifications with an attachment each precede the response.
public struct ReadResource: Request {
    public static let method = "resource.read"
    /// The notification with a part of the bytes.
    public static let notification = "resource.chunk"
    /// The maximum number of bytes in a response without credit.
    public static let maxReplyBytes = 8 << 20
    /// The maximum size of a part in a notification, in bytes.
    public static let chunkBytes = 1 << 20
    /// The asset.
    public var asset: ObjectID
    /// Type of the resource.
    public var type: ResourceType
    /// SHA-256 of a file of the asset, which is read whole, instead of a resource; nil to name the resource by its
    /// type. A service may also read files of earlier versions of the asset.
    public var digest: String?
    /// Offset of the first byte.
    public var offset: Int64
    /// Number of bytes; nil: to the end.
    public var length: Int64?
    /// True if bytes that are in remote storage may be downloaded.
    public var isNetworkAccessAllowed: Bool

    public init(
        asset: ObjectID,
        type: ResourceType = .photo,
        digest: String? = nil,
        offset: Int64 = 0,
        length: Int64? = nil,
        isNetworkAccessAllowed: Bool = false
    ) {
        self.isNetworkAccessAllowed = isNetworkAccessAllowed
        self.asset = asset
        self.type = type
        self.digest = digest
        self.offset = offset
        self.length = length
    }

    public static let table = parameters(
        "The bytes of a resource, whole or in part. Without credit, more than \(maxReplyBytes) bytes are limit_exceeded: "
            + "read them in ranges, or give credit to receive them as resource.chunk.",
        blank: ReadResource(asset: .none, type: .photo),
        [
            .asset(\.asset),
            .defaulted("type", \.type, .name(ResourceType.self), "Type of the resource.", default: .photo),
            .optional(
                "digest",
                \.digest,
                .text(maxBytes: 64),
                "SHA-256 of a file of the asset, which then need not be named by the type of a resource."
            ),
            .defaulted("offset", \.offset, .integer(0...Int64.max), "Offset of the first byte.", default: 0),
            .optional(
                "length",
                \.length,
                .integer(0...Int64.max),
                "Number of bytes; absent: to the end. Without credit at most \(maxReplyBytes)."
            ),
            .networkAccess(\.isNetworkAccessAllowed),
        ]
    )

    /// The delivered range of a resource.
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
