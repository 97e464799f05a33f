public import JSONValue
public import PhotoModel

/// `resource.export`: a whole resource, verified, into a file on the catalog's machine or as an attachment (T-32).
public struct ExportResource: Request {
    public static let method = "resource.export"
    /// The asset.
    public var asset: ObjectID
    /// Type of the resource.
    public var type: ResourceType
    /// Absolute path of the new file; nil for the bytes as an attachment of the response.
    public var path: String?
    /// True if an existing file is replaced.
    public var replaces: Bool
    /// True if bytes that are in remote storage may be downloaded.
    public var isNetworkAccessAllowed: Bool

    public init(
        asset: ObjectID,
        type: ResourceType = .photo,
        path: String? = nil,
        replaces: Bool = false,
        isNetworkAccessAllowed: Bool = false
    ) {
        self.isNetworkAccessAllowed = isNetworkAccessAllowed
        self.asset = asset
        self.type = type
        self.path = path
        self.replaces = replaces
    }

    public static let table = parameters(
        "A whole resource, verified, into a file on the catalog's machine or as an attachment.",
        blank: ExportResource(asset: .none),
        [
            .asset(\.asset),
            .defaulted("type", \.type, .name(ResourceType.self), "Type of the resource.", default: .photo),
            .optional(
                "path",
                \.path,
                .text(maxBytes: 4096),
                "Absolute path of the new file on the catalog's machine, in an existing folder, for the catalog's own "
                    + "user; it appears when it is complete. Absent: the bytes are attached, up to 8 MiB."
            ),
            .defaulted("replace", \.replaces, .flag, "Replace an existing file.", default: false),
            .networkAccess(\.isNetworkAccessAllowed),
        ]
    )

    /// The exported resource.
    public struct Result: JSONTabled {
        /// The resource, with its size and digest.
        public var resource: AssetResource
        /// The file that was written; nil if the bytes are attached.
        public var path: String?

        public init(resource: AssetResource, path: String? = nil) {
            self.resource = resource
            self.path = path
        }

        public static let table = JSONTable(
            "ExportedResource",
            "The exported resource.",
            unknown: .ignored,
            blank: Result(resource: AssetResource(type: .photo, digest: "", size: 0, contentType: "")),
            [
                .required("resource", \.resource, .object(AssetResource.self), "The resource, with its digest."),
                .optional("path", \.path, .text(maxBytes: 4096), "The file that was written."),
            ]
        )
    }
}
