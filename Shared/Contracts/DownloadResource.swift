public import JSONValue
public import PhotoModel

/// `resource.download`: makes sure that the bytes of a resource are stored on the catalog's machine.
///
/// Notifications: `resource.progress {progress}` while the bytes are downloaded from remote storage (S-48).
public struct DownloadResource: Request {
    public static let method = "resource.download"
    /// The notification about the progress of a download.
    public static let notification = "resource.progress"
    /// The asset.
    public var asset: ObjectID
    /// Type of the resource.
    public var type: ResourceType
    /// SHA-256 of the resource's bytes, instead of its type; nil to name it by its type.
    public var digest: String?
    /// True if bytes that are in remote storage may be downloaded.
    public var isNetworkAccessAllowed: Bool

    public init(
        asset: ObjectID,
        type: ResourceType = .photo,
        digest: String? = nil,
        isNetworkAccessAllowed: Bool = false
    ) {
        self.asset = asset
        self.type = type
        self.digest = digest
        self.isNetworkAccessAllowed = isNetworkAccessAllowed
    }

    public static let table = parameters(
        "Makes sure that the bytes of a resource are on the catalog's machine, and downloads them if that is allowed.",
        blank: DownloadResource(asset: .none),
        [
            .asset(\.asset),
            .defaulted("type", \.type, .name(ResourceType.self), "Type of the resource.", default: .photo),
            .optional(
                "digest",
                \.digest,
                .text(maxBytes: 64),
                "SHA-256 of the resource, which then need not be named by type."
            ),
            .networkAccess(\.isNetworkAccessAllowed),
        ]
    )

    /// A resource whose bytes are on the catalog's machine.
    public struct Result: JSONTabled {
        /// The resource.
        public var resource: AssetResource
        /// True if the bytes were downloaded for this request.
        public var isDownloaded: Bool

        public init(resource: AssetResource, isDownloaded: Bool) {
            self.resource = resource
            self.isDownloaded = isDownloaded
        }

        public static let table = JSONTable(
            "DownloadedResource",
            "A resource whose bytes are on the catalog's machine.",
            unknown: .ignored,
            blank: Result(
                resource: AssetResource(type: .photo, digest: "", size: 0, contentType: ""),
                isDownloaded: false
            ),
            [
                .required("resource", \.resource, .object(AssetResource.self), "The resource, with its digest."),
                .required("isDownloaded", \.isDownloaded, .flag, "True if it was downloaded for this request."),
            ]
        )
    }
}
