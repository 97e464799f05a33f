public import JSONValue

/// Where a picture was taken, WGS 84.
public struct Location: Sendable, Hashable, JSONTabled {
    /// Degrees north, -90...90.
    public var latitude: Double
    /// Degrees east, -180...180.
    public var longitude: Double
    /// Metres above the sea, where it is known.
    public var altitude: Double?

    public init(latitude: Double, longitude: Double, altitude: Double? = nil) {
        self.latitude = latitude
        self.longitude = longitude
        self.altitude = altitude
    }

    public static let table = JSONTable(
        "Location",
        "A place on earth, WGS 84.",
        unknown: .refused,
        blank: Location(latitude: 0, longitude: 0),
        [
            .required("latitude", \.latitude, .number(-90...90), "Degrees north."),
            .required("longitude", \.longitude, .number(-180...180), "Degrees east."),
            .optional("altitude", \.altitude, .number(-20_000...100_000), "Metres above the sea."),
        ]
    )
}

/// Bytes that belong to an asset: `PHAssetResource` (spec T-30).
public struct AssetResource: Sendable, Hashable, JSONTabled {
    public var type: ResourceType
    /// SHA-256 of the bytes, 64 lower-case hexadecimal digits.
    public var digest: String
    public var size: Int64
    /// Uniform type identifier, for example `public.jpeg`.
    public var contentType: String
    public var originalFilename: String?
    /// Pixels, after orientation; zero where the resource is no picture.
    public var pixelWidth: Int
    public var pixelHeight: Int
    /// Microseconds; nil where the resource is no video.
    public var duration: Int64?
    /// What of a picture is lost, in words: the bytes are kept as they came. Nil where nothing is known to be.
    public var damage: String?

    /// The longest `damage`, in bytes.
    public static let maxDamageBytes = 512

    public init(
        type: ResourceType,
        digest: String,
        size: Int64,
        contentType: String,
        originalFilename: String? = nil,
        pixelWidth: Int = 0,
        pixelHeight: Int = 0,
        duration: Int64? = nil,
        damage: String? = nil
    ) {
        self.type = type
        self.digest = digest
        self.size = size
        self.contentType = contentType
        self.originalFilename = originalFilename
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
        self.duration = duration
        self.damage = damage
    }

    public static let table = JSONTable(
        "AssetResource",
        "Bytes that belong to an asset.",
        unknown: .ignored,
        blank: AssetResource(type: .photo, digest: "", size: 0, contentType: ""),
        [
            .required("type", \.type, .name(ResourceType.self), "What the bytes are to the asset."),
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes, in hexadecimal."),
            .required("size", \.size, .integer(0...Int64.max), "Bytes."),
            .required("contentType", \.contentType, .text(maxBytes: 128), "Uniform type identifier."),
            .optional("originalFilename", \.originalFilename, .text(maxBytes: 1024), "The name it came with."),
            .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels after orientation, 0 for no picture."),
            .required(
                "pixelHeight",
                \.pixelHeight,
                .count(0...1_000_000),
                "Pixels after orientation, 0 for no picture."
            ),
            .optional("duration", \.duration, .integer(0...Int64.max), "Microseconds, of a video."),
            .optional(
                "damage",
                \.damage,
                .text(maxBytes: maxDamageBytes),
                "What of the picture is lost, though the file is kept as it came; absent where nothing is known to be."
            ),
        ]
    )
}

/// An asset's place in a stored collection.
public struct Membership: Sendable, Hashable, JSONTabled {
    public var collection: ObjectID
    public var key: OrderKey

    public init(collection: ObjectID, key: OrderKey) {
        self.collection = collection
        self.key = key
    }

    public static let table = JSONTable(
        "Membership",
        "An asset's place in a collection.",
        unknown: .ignored,
        blank: Membership(collection: .root, key: OrderKey.after(nil)),
        [
            .required("collection", \.collection, .id(.assetCollection), "The album."),
            .required("key", \.key, .orderKey, "Sorts the members of the album, by its bytes."),
        ]
    )
}

/// A photo or video of the library with every stored fact about it: `PHAsset` (spec S-03, T-08 to T-11).
///
/// A value: it never changes. All dates are microseconds since 1970-01-01T00:00:00Z.
public struct Asset: Sendable, Hashable, JSONTabled {
    public var id: ObjectID
    /// Any change makes a new one.
    public var revision: Revision
    /// A change of the pixels makes a new one.
    public var contentRevision: Revision
    public var mediaType: MediaType = .unknown
    public var mediaSubtypes: MediaSubtypes = []
    public var playbackStyle: PlaybackStyle = .unsupported
    public var playbackVariation: PlaybackVariation = .none
    public var sourceType: SourceType = .typeUserLibrary
    /// Uniform type identifier of what is presented.
    public var contentType = ""
    /// Pixels of what is presented, after orientation.
    public var pixelWidth = 0
    public var pixelHeight = 0
    /// Microseconds; zero for a still picture.
    public var duration: Int64 = 0
    /// When the picture was taken, in UTC.
    public var creationDate: Int64?
    /// Seconds east of UTC of the clock on the wall when it was taken; nil where the file does not say, and then
    /// `creationDate` was read as UTC.
    public var creationOffset: Int?
    /// The last change of any kind.
    public var modificationDate: Int64 = 0
    /// The last change of the pixels (spec P-16).
    public var contentModificationDate: Int64 = 0
    public var addedDate: Int64 = 0
    /// Whether it is in the smart album of what came lately; the catalog clears it when its time is over.
    public var isRecentlyAdded = false
    /// When it went to the trash; nil outside.
    public var trashedDate: Int64?
    public var location: Location?
    public var isFavorite = false
    public var isHidden = false
    public var burstIdentifier: String?
    public var representsBurst = false
    public var burstSelectionTypes: BurstSelectionTypes = []
    /// 0 (unset) to 5.
    public var rating = 0
    public var caption: String?
    public var keywords: [String] = []
    public var originalFilename: String?
    public var cameraMake: String?
    public var cameraModel: String?
    public var lensModel: String?
    /// The format of the last edit; nil where there is none (spec T-09).
    public var adjustmentFormatIdentifier: String?
    public var adjustmentFormatVersion: String?
    public var adjustmentDate: Int64?
    public var resources: [AssetResource] = []
    public var memberships: [Membership] = []

    public init(id: ObjectID, revision: Revision = Revision(0), contentRevision: Revision = Revision(0)) {
        self.id = id
        self.revision = revision
        self.contentRevision = contentRevision
    }

    public var hasAdjustments: Bool { adjustmentFormatIdentifier != nil }

    /// The first resource of a type.
    public func resource(_ type: ResourceType) -> AssetResource? { resources.first { $0.type == type } }

    /// The picture as it was imported: for an unedited asset what is shown, for an edited one what the edit began with.
    public var originalResource: AssetResource? { resource(.photo) ?? resource(.video) ?? resource(.audio) }

    /// What is shown: the render of the last edit, else the original (version `current`, spec S-49).
    public var currentResource: AssetResource? {
        resource(.fullSizePhoto) ?? resource(.fullSizeVideo) ?? originalResource
    }

    private static let date = JSONType<Int64>.integer()

    public static let table = JSONTable(
        "Asset",
        "A photo or video and every stored fact about it. Dates are microseconds since 1970, UTC.",
        unknown: .ignored,
        blank: Asset(id: .none),
        [
            .required("id", \.id, .id(.asset), "Stable for the life of the library."),
            .required("revision", \.revision, .revision, "New at any change."),
            .required("contentRevision", \.contentRevision, .revision, "New at a change of the pixels."),
            .required("mediaType", \.mediaType, .name(MediaType.self), "Kind of medium."),
            .required("mediaSubtypes", \.mediaSubtypes, .bits(MediaSubtypes.self), "Panorama, HDR and the like."),
            .required("playbackStyle", \.playbackStyle, .name(PlaybackStyle.self), "How to present it."),
            .defaulted(
                "playbackVariation",
                \.playbackVariation,
                .name(PlaybackVariation.self),
                "Effect of a Live Photo.",
                default: .none
            ),
            .required("sourceType", \.sourceType, .name(SourceType.self), "Where it came from."),
            .required("contentType", \.contentType, .text(maxBytes: 128), "Uniform type identifier of what is shown."),
            .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Pixels, after orientation."),
            .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Pixels, after orientation."),
            .required("duration", \.duration, .integer(0...Int64.max), "Microseconds, 0 for a still picture."),
            .optional("creationDate", \.creationDate, date, "When it was taken."),
            .optional(
                "creationOffset",
                \.creationOffset,
                .count(-86_400...86_400),
                "Seconds east of UTC where it was taken; absent where the file does not say."
            ),
            .required("modificationDate", \.modificationDate, date, "Last change of any kind."),
            .required("contentModificationDate", \.contentModificationDate, date, "Last change of the pixels."),
            .required("addedDate", \.addedDate, date, "When it came into the library."),
            .defaulted("isRecentlyAdded", \.isRecentlyAdded, .flag, "Came into the library lately.", default: false),
            .optional("trashedDate", \.trashedDate, date, "When it went to the trash."),
            .optional("location", \.location, .object(Location.self), "Where it was taken."),
            .required("isFavorite", \.isFavorite, .flag, "Marked as a favourite."),
            .required("isHidden", \.isHidden, .flag, "Left out of fetches that do not ask for hidden assets."),
            .optional("burstIdentifier", \.burstIdentifier, .text(maxBytes: 128), "Shared by the frames of a burst."),
            .defaulted("representsBurst", \.representsBurst, .flag, "The frame shown for its burst.", default: false),
            .defaulted(
                "burstSelectionTypes",
                \.burstSelectionTypes,
                .bits(BurstSelectionTypes.self),
                "Picked by whom.",
                default: []
            ),
            .defaulted("rating", \.rating, .count(0...5), "Stars, 0 for none.", default: 0),
            .optional("caption", \.caption, .text(maxBytes: 65_536), "Text about the picture."),
            .defaulted(
                "keywords",
                \.keywords,
                .list(of: .text(maxBytes: 1024), limit: 1024),
                "Words about the picture.",
                default: []
            ),
            .optional("originalFilename", \.originalFilename, .text(maxBytes: 1024), "The name it came with."),
            .optional("cameraMake", \.cameraMake, .text(maxBytes: 1024), "Maker of the camera."),
            .optional("cameraModel", \.cameraModel, .text(maxBytes: 1024), "The camera."),
            .optional("lensModel", \.lensModel, .text(maxBytes: 1024), "The lens."),
            .optional(
                "adjustmentFormatIdentifier",
                \.adjustmentFormatIdentifier,
                .text(maxBytes: 256),
                "Format of the last edit; absent where there is none."
            ),
            .optional(
                "adjustmentFormatVersion",
                \.adjustmentFormatVersion,
                .text(maxBytes: 64),
                "Version of that format."
            ),
            .optional("adjustmentDate", \.adjustmentDate, date, "When the last edit was made."),
            .required(
                "resources",
                \.resources,
                .list(of: .object(AssetResource.self), limit: 64),
                "The bytes it has."
            ),
            .defaulted(
                "memberships",
                \.memberships,
                .list(of: .object(Membership.self), limit: 10_000),
                "The albums it is in, with its place in each.",
                default: []
            ),
        ]
    )
}
