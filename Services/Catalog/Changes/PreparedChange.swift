import PhotoModel
import Storage

/// Metadata that was read from a file before the transaction.
struct ExtractedMetadata: Sendable, Equatable {
    var mediaType = MediaType.image
    var mediaSubtypes: MediaSubtypes = []
    var playbackStyle = PlaybackStyle.image
    var contentType = ""
    /// The size in pixels after orientation.
    var pixelWidth = 0
    var pixelHeight = 0
    /// The EXIF orientation of the stored pixels; 1 is upright.
    var orientation = 1
    var duration: Int64 = 0
    var creationDate: Int64?
    var creationOffset: Int?
    var location: Location?
    var burstIdentifier: String?
    var rating = 0
    var caption: String?
    var keywords: [String] = []
    var cameraMake: String?
    var cameraModel: String?
    var lensModel: String?
    /// The identifier that the photo and the video of a Live Photo share.
    var contentIdentifier: String?
}

/// Bytes in the resource store that are about to be assigned to an asset.
struct PreparedResource: Sendable {
    var type: ResourceType
    var digest: String
    var size: Int64
    var originalFilename: String?
    /// The path that the client sent, for error messages; nil if the bytes did not come from a path.
    var path: String?
    /// The file at the path, if it is to be removed once its bytes belong to an asset.
    var identity: FileIdentity?
    /// The metadata; nil if it was not extracted because an asset with these bytes already existed.
    var facts: ExtractedMetadata?
}

/// A change request whose bytes are in the resource store.
struct PreparedChange: Sendable {
    var request: ChangeRequest
    /// The resources in the order of the request; for an edit, the render.
    var resources: [PreparedResource] = []
    /// The render, if a new asset comes with an edit.
    var render: PreparedResource?
    /// The adjustment data, if the request is an edit.
    var adjustment: PreparedResource?
    /// The list as the client saw it, if the request has index operations.
    var snapshot: SnapshotList?

    init(
        _ request: ChangeRequest,
        resources: [PreparedResource] = [],
        render: PreparedResource? = nil,
        adjustment: PreparedResource? = nil,
        snapshot: SnapshotList? = nil
    ) {
        self.render = render
        self.snapshot = snapshot
        self.request = request
        self.resources = resources
        self.adjustment = adjustment
    }
}

/// The rules need the metadata of bytes that were not read, because the asset that had them was deleted meanwhile.
struct MissingMetadataError: Error {}
