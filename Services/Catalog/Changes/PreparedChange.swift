import PhotoModel
import Storage

/// One request of a transaction, with everything that its rules need besides the database: the bytes in the resource
/// store, and the list to which indexes refer. A request without bytes and indexes is only wrapped.
struct PreparedChange: Sendable {
    var request: ChangeRequest
    /// The resources in the order of the request; for an edit, the render and the video of a Live Photo.
    var resources: [PreparedResource] = []
    /// The render, if a new asset comes with an edit.
    var render: PreparedResource?
    /// The adjustment data, if the request is an edit.
    var adjustment: PreparedResource?
    /// The list as the client saw it, if the request names members by index.
    var snapshot: SnapshotList?

    init(
        _ request: ChangeRequest,
        resources: [PreparedResource] = [],
        render: PreparedResource? = nil,
        adjustment: PreparedResource? = nil,
        snapshot: SnapshotList? = nil
    ) {
        self.request = request
        self.resources = resources
        self.render = render
        self.adjustment = adjustment
        self.snapshot = snapshot
    }
}

/// Bytes in the resource store that are about to be assigned to an asset.
struct PreparedResource: Sendable {
    var type: ResourceType
    var digest: String
    var size: Int64
    /// False if the bytes are new: no asset has them, unless its stored file was lost or is a reference.
    var wasPresent: Bool
    var originalFilename: String?
    /// The path that the client sent, for error messages; nil if the bytes did not come from a path.
    var path: String?
    /// The identity of the file at the path, if it is to be removed once its bytes belong to an asset.
    var identity: FileIdentity?
    // Stored indirectly, because each change contains a resource, which usually has no metadata.
    private var storedFacts: Indirect<ExtractedMetadata>?

    init(
        type: ResourceType,
        digest: String,
        size: Int64,
        wasPresent: Bool = true,
        originalFilename: String? = nil,
        path: String? = nil,
        identity: FileIdentity? = nil,
        facts: ExtractedMetadata? = nil
    ) {
        self.type = type
        self.digest = digest
        self.size = size
        self.wasPresent = wasPresent
        self.originalFilename = originalFilename
        self.path = path
        self.identity = identity
        self.facts = facts
    }

    /// The metadata; nil if it was not extracted because an asset with these bytes already existed.
    var facts: ExtractedMetadata? {
        get { storedFacts?.value }
        set { storedFacts = newValue.map { Indirect($0) } }
    }
}
