public import JSONValue

/// A photo or video of the library with all its stored properties: `PHAsset` (S-03, T-08 to T-11).
///
/// An immutable value. All dates are microseconds since 1970-01-01T00:00:00Z.
public struct Asset: Sendable, Hashable, JSONTabled {
    /// The maximum length of a side of an image, in pixels.
    public static let maxSide = Int(Int32.max)

    /// Stable for the life of the library.
    public var id: ObjectID
    /// Changes with any change of the asset.
    public var revision: Revision
    /// Changes only when the pixels change.
    public var contentRevision: Revision
    /// An image, a video or an audio file.
    public var mediaType: MediaType = .unknown
    /// Panorama, HDR, screenshot and similar properties.
    public var mediaSubtypes: MediaSubtypes = []
    /// The presentation of the asset: still, animated, Live Photo or video.
    public var playbackStyle: PlaybackStyle = .unsupported
    /// The effect of a Live Photo.
    public var playbackVariation: PlaybackVariation = .none
    /// The source of the asset.
    public var sourceType: SourceType = .typeUserLibrary
    /// Uniform type identifier of the current image or video.
    public var contentType = ""
    /// Width of the current image or video in pixels, after orientation.
    public var pixelWidth = 0
    /// Height of the current image or video in pixels, after orientation.
    public var pixelHeight = 0
    /// Microseconds; 0 for a still image.
    public var duration: Int64 = 0
    /// The time at which the image was taken, UTC; nil if unknown.
    public var creationDate: Int64?
    /// The offset of the camera's local time from UTC, in seconds east; nil if the file does not contain it, in which
    /// case `creationDate` was read as UTC.
    public var creationOffset: Int?
    /// True if `creationDate` is the time of the file's last change, because the file has no date of capture.
    public var hasOnlyModificationDate = false
    /// True if `creationOffset` is not in the file, but derived from the time zone of the location.
    public var isCreationOffsetDerived = false
    /// The time of the last change of any kind.
    public var modificationDate: Int64 = 0
    /// The time of the last change of the pixels (P-16).
    public var contentModificationDate: Int64 = 0
    /// The time at which it was added to the library.
    public var addedDate: Int64 = 0
    /// True while the asset is in the Recently Added smart album. The catalog clears it when the period ends.
    public var isRecentlyAdded = false
    /// The time at which it was moved to the trash; nil if it is not in the trash.
    public var trashedDate: Int64?
    /// The location where it was taken; nil if unknown.
    public var location: Location?
    /// Marked as a favourite by the user.
    public var isFavorite = false
    /// Excluded from fetches that do not include hidden assets.
    public var isHidden = false
    /// Shared by the frames of a burst; nil for other assets.
    public var burstIdentifier: String?
    /// True if this frame represents its burst.
    public var representsBurst = false
    /// The ways in which the frame was selected from its burst.
    public var burstSelectionTypes: BurstSelectionTypes = []
    /// The sharpness of a frame of a burst, by which Safelight picks one (S-38); comparable only within the burst. Nil
    /// for other assets, for frames of other formats than JPEG, and for frames that the importing program picked.
    public var sharpness: Double?
    /// 0 (unset) to 5.
    public var rating = 0
    /// The caption, NFC; nil if there is none.
    public var caption: String?
    /// The keywords, NFC.
    public var keywords: [String] = []
    /// The file name at import; nil if unknown.
    public var originalFilename: String?
    /// The maker of the camera; nil if unknown.
    public var cameraMake: String?
    /// The model of the camera; nil if unknown.
    public var cameraModel: String?
    /// The model of the lens; nil if unknown.
    public var lensModel: String?
    var storedMetadata: Indirect<AssetMetadata>?
    /// The format of the last edit; nil if unedited (T-09).
    public var adjustmentFormatIdentifier: String?
    /// The version of that format; nil if unedited.
    public var adjustmentFormatVersion: String?
    /// The time of the last edit; nil if unedited.
    public var adjustmentDate: Int64?
    /// The files of the asset: originals, renders and adjustment data.
    public var resources: [AssetResource] = []
    /// The albums that contain it, with its sort key in each.
    public var memberships: [Membership] = []

    public init(id: ObjectID, revision: Revision = Revision(0), contentRevision: Revision = Revision(0)) {
        self.id = id
        self.revision = revision
        self.contentRevision = contentRevision
    }

    /// The metadata of the file by which people search; nil if it has none.
    public var metadata: AssetMetadata? {
        get { storedMetadata?.value }
        set { storedMetadata = newValue.flatMap { $0.isEmpty ? nil : Indirect($0) } }
    }

    /// True if the asset has been edited.
    public var hasAdjustments: Bool { adjustmentFormatIdentifier != nil }

    /// The kind of adjustments (T-11). No file records that a camera adjusted it, so an edited asset counts as adjusted
    /// by a user.
    public var adjustmentsState: AdjustmentsState { hasAdjustments ? .userAdjusted : .none }

    /// Returns the first resource of a type.
    public func resource(_ type: ResourceType) -> AssetResource? { resources.first { $0.type == type } }

    /// The file as it was imported: the base of every edit.
    public var originalResource: AssetResource? { resource(.photo) ?? resource(.video) ?? resource(.audio) }

    /// The file to present: the render of the last edit, or the original if unedited (version `current`, S-49).
    public var currentResource: AssetResource? {
        resource(.fullSizePhoto) ?? resource(.fullSizeVideo) ?? originalResource
    }

    private static let date = JSONType<Int64>.date()

    public static let table = JSONTable(
        "Asset",
        "A photo or video with all its stored properties. Dates are microseconds since 1970, UTC.",
        unknown: .ignored,
        blank: Asset(id: .none),
        [
            .required("id", \.id, .id(.asset), "Stable for the life of the library."),
            .required("revision", \.revision, .revision, "Changes with any change."),
            .required("contentRevision", \.contentRevision, .revision, "Changes only when the pixels change."),
            .required("mediaType", \.mediaType, .name(MediaType.self), "The media type."),
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
            .required("contentType", \.contentType, .text(maxBytes: 128), "Uniform type identifier."),
            .required("pixelWidth", \.pixelWidth, .count(0...Asset.maxSide), "Pixels, after orientation."),
            .required("pixelHeight", \.pixelHeight, .count(0...Asset.maxSide), "Pixels, after orientation."),
            .required("duration", \.duration, .integer(0...Int64.max), "Microseconds, 0 for a still image."),
            .optional("creationDate", \.creationDate, date, "When it was taken."),
            .optional(
                "creationOffset",
                \.creationOffset,
                .count(-86_400...86_400),
                "Seconds east of UTC where it was taken; absent if the file does not contain it."
            ),
            .defaulted(
                "hasOnlyModificationDate",
                \.hasOnlyModificationDate,
                .flag,
                "creationDate is the time of the file's last change: the file has no date of capture.",
                default: false
            ),
            .defaulted(
                "isCreationOffsetDerived",
                \.isCreationOffsetDerived,
                .flag,
                "creationOffset is not in the file: it is that of the time zone of the place.",
                default: false
            ),
            .required("modificationDate", \.modificationDate, date, "Last change of any kind."),
            .required("contentModificationDate", \.contentModificationDate, date, "Last change of the pixels."),
            .required("addedDate", \.addedDate, date, "When it was added to the library."),
            .defaulted("isRecentlyAdded", \.isRecentlyAdded, .flag, "Added to the library recently.", default: false),
            .optional("trashedDate", \.trashedDate, date, "When it was moved to the trash."),
            .optional("location", \.location, .object(Location.self), "Where it was taken."),
            .required("isFavorite", \.isFavorite, .flag, "Marked as a favourite."),
            .required("isHidden", \.isHidden, .flag, "Excluded from fetches that do not include hidden assets."),
            .optional(
                "burstIdentifier",
                \.burstIdentifier,
                .storedText(maxBytes: TextLimit.burstIdentifier),
                "Shared by the frames of a burst."
            ),
            .defaulted("representsBurst", \.representsBurst, .flag, "The frame shown for its burst.", default: false),
            .defaulted(
                "burstSelectionTypes",
                \.burstSelectionTypes,
                .bits(BurstSelectionTypes.self),
                "How the frame was selected.",
                default: []
            ),
            .optional(
                "sharpness",
                \.sharpness,
                .number(0...1e9),
                "Variance of the Laplacian; of the frames of a burst, the sharpest is the autoPick."
            ),
            .defaulted("rating", \.rating, .count(0...5), "Stars, 0 for none.", default: 0),
            .optional("caption", \.caption, .storedText(maxBytes: TextLimit.caption), "The caption."),
            .defaulted(
                "keywords",
                \.keywords,
                .list(of: .storedText(maxBytes: TextLimit.keyword), limit: 1024),
                "The keywords.",
                default: []
            ),
            .optional(
                "originalFilename",
                \.originalFilename,
                .storedText(maxBytes: TextLimit.filename),
                "The file name at import."
            ),
            .optional("cameraMake", \.cameraMake, .text(maxBytes: 1024), "Maker of the camera."),
            .optional("cameraModel", \.cameraModel, .text(maxBytes: 1024), "Model of the camera."),
            .optional("lensModel", \.lensModel, .text(maxBytes: 1024), "Model of the lens."),
            .optional("metadata", \.storedMetadata, .metadata, "Exposure, authors, places and persons, if known."),
            .optional(
                "adjustmentFormatIdentifier",
                \.adjustmentFormatIdentifier,
                .storedText(maxBytes: TextLimit.formatIdentifier),
                "Format of the last edit; absent if unedited."
            ),
            .optional(
                "adjustmentFormatVersion",
                \.adjustmentFormatVersion,
                .storedText(maxBytes: TextLimit.formatVersion),
                "Version of that format."
            ),
            .optional("adjustmentDate", \.adjustmentDate, date, "When the last edit was made."),
            .derived(
                "adjustmentsState",
                { $0.hasAdjustments ? $0.adjustmentsState : nil },
                .name(AdjustmentsState.self),
                "The kind of program that adjusted it; absent: none."
            ),
            .derived(
                "originalResourceChoice",
                \.originalResourceChoice,
                .name(OriginalChoice.self),
                "Which of its originals is presented and edited; absent unless it has a RAW and a compressed one."
            ),
            .required(
                "resources",
                \.resources,
                .list(of: .object(AssetResource.self), limit: 64),
                "Its files."
            ),
            .defaulted(
                "memberships",
                \.memberships,
                .list(of: .object(Membership.self), limit: 10_000),
                "The albums it is in, with its position in each.",
                default: []
            ),
        ]
    )
}
