public import JSONValue
public import PhotoModel

/// `jobs.create`: registers uploads or downloads of the resources of assets, all of them or none (T-34).
public struct CreateUploadJobs: Request {
    public static let method = "jobs.create"
    /// The assets; one job is made for each.
    public var assets: [ObjectID]
    public var kind: UploadJob.Kind
    /// Type of the resource; a video's original is used for `photo` if it has no photo.
    public var resourceType: ResourceType

    public init(assets: [ObjectID], kind: UploadJob.Kind = .upload, resourceType: ResourceType = .photo) {
        self.assets = assets
        self.kind = kind
        self.resourceType = resourceType
    }

    public static let table = parameters(
        "Registers uploads of resources to remote storage, or downloads from there; they go on after a restart.",
        blank: CreateUploadJobs(assets: []),
        [
            .required(
                "assets",
                \.assets,
                .list(of: .id(.asset), limit: UploadJob.limit),
                "The assets, a job for each."
            ),
            .defaulted("type", \.kind, .name(UploadJob.Kind.self), "Upload, or download only.", default: .upload),
            .defaulted(
                "resourceType",
                \.resourceType,
                .name(ResourceType.self),
                "Type of the resource.",
                default: .photo
            ),
        ]
    )

    public typealias Result = UploadJobPage
}
