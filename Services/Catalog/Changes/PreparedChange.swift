import PhotoModel
import Storage

/// Facts that were read from a picture's bytes before the transaction.
struct PictureFacts: Sendable, Equatable {
    var mediaType = MediaType.image
    var mediaSubtypes: MediaSubtypes = []
    var playbackStyle = PlaybackStyle.image
    var contentType = ""
    /// Pixels after orientation.
    var pixelWidth = 0
    var pixelHeight = 0
    /// EXIF orientation of the stored pixels; 1 is upright.
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
    /// What the still and the film of a Live Photo share.
    var contentIdentifier: String?
}

/// Bytes that are in the resource store already, ready to belong to an asset.
struct PreparedResource: Sendable {
    var type: ResourceType
    var digest: String
    var size: Int64
    var originalFilename: String?
    /// Where they came from, for errors: the path that the client named.
    var path: String?
    /// The file there, where it is to be removed once its bytes belong to an asset.
    var identity: FileIdentity?
    /// What was read from the bytes; nil where nobody looked, because an asset with these bytes was there.
    var facts: PictureFacts?
}

/// A change request with its bytes taken in.
struct PreparedChange: Sendable {
    var request: ChangeRequest
    /// In the order in which the request names them; for an edit the render.
    var resources: [PreparedResource] = []
    /// For a new asset that comes with an edit: its render.
    var render: PreparedResource?
    /// For an edit: its adjustment data.
    var adjustment: PreparedResource?
    /// For index operations: the list as the client saw it.
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

/// The rules need facts of bytes that nobody looked at: the asset that stood for them is gone meanwhile.
struct FactsNeeded: Error {}
