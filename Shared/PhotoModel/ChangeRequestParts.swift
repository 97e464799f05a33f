public import JSONValue

/// An entity, or one that an earlier request of the same transaction makes (spec S-09, S-79).
public enum ObjectReference: Sendable, Hashable {
    case id(ObjectID)
    /// The `ref` of a create request: PhotoKit's placeholder.
    case placeholder(String)

    public static let maxPlaceholderBytes = 64
}

extension JSONType where Value == ObjectReference {
    /// `"a01h…"` or `{"ref": "p1"}`.
    public static var reference: JSONType {
        JSONType(
            schema: [
                "anyOf": [
                    ["type": "string"],
                    ["type": "object", "properties": ["ref": ["type": "string"]], "required": ["ref"]],
                ]
            ],
            decode: { (json: JSON) throws(JSONProblem) in
                if let text = json.stringValue, let id = ObjectID(text) { return .id(id) }
                if case .object(let object) = json, object.count == 1, let ref = object["ref"]?.stringValue,
                    !ref.isEmpty,
                    ref.utf8.count <= ObjectReference.maxPlaceholderBytes
                {
                    return .placeholder(ref)
                }
                throw JSONProblem("expected an identifier or {\"ref\": …} of a create request in this transaction")
            },
            encode: { reference in
                switch reference {
                case .id(let id): .string(id.text)
                case .placeholder(let ref): ["ref": .string(ref)]
                }
            }
        )
    }
}

/// Where the bytes of a resource come from; exactly one of the three.
public enum ResourceSource: Sendable, Hashable {
    /// The n-th attachment of the message, from 0.
    case attachment(Int)
    /// A finished upload.
    case upload(String)
    /// A file on the catalog's machine, below a folder that its configuration names; over `ipc://` only.
    case path(String)
}

/// A resource to be taken in with a new asset (spec T-19, T-21).
public struct NewResource: Sendable, Hashable, JSONTabled {
    public var type: ResourceType
    public var attachment: Int?
    public var upload: String?
    public var path: String?
    /// The file at the path stays where it is and stands for the bytes, instead of being copied.
    public var isReferenced: Bool
    /// The file at the path is removed once the asset is committed: PhotoKit's `shouldMoveFile` (spec T-21).
    public var isMoved: Bool
    /// The name it came with; for a path the file's own name where it is absent.
    public var originalFilename: String?

    public init(
        type: ResourceType = .photo,
        source: ResourceSource,
        originalFilename: String? = nil,
        isReferenced: Bool = false,
        isMoved: Bool = false
    ) {
        self.isMoved = isMoved
        self.type = type
        self.originalFilename = originalFilename
        self.isReferenced = isReferenced
        switch source {
        case .attachment(let index): attachment = index
        case .upload(let upload): self.upload = upload
        case .path(let path): self.path = path
        }
    }

    /// Where the bytes come from; nil where none or more than one place is named.
    public var source: ResourceSource? {
        switch (attachment, upload, path) {
        case (let index?, nil, nil): .attachment(index)
        case (nil, let upload?, nil): .upload(upload)
        case (nil, nil, let path?): .path(path)
        default: nil
        }
    }

    public static let table = JSONTable(
        "NewResource",
        "Bytes to be taken in: exactly one of attachment, upload and path.",
        unknown: .refused,
        blank: NewResource(source: .path("")),
        [
            .defaulted("type", \.type, .name(ResourceType.self), "What they are to the asset.", default: .photo),
            .optional("attachment", \.attachment, .count(0...1000), "Number of the attachment, from 0."),
            .optional("upload", \.upload, .text(maxBytes: 64), "A finished upload."),
            .optional("path", \.path, .text(maxBytes: 4096), "A file on the catalog's machine; over ipc only."),
            .defaulted(
                "reference",
                \.isReferenced,
                .flag,
                "The file at the path is not copied: it stays where it is, and is checked at each opening.",
                default: false
            ),
            .defaulted(
                "move",
                \.isMoved,
                .flag,
                "The file at the path is removed once the asset is committed; never one with other hard links.",
                default: false
            ),
            .optional("originalFilename", \.originalFilename, .text(maxBytes: 1024), "The name it came with."),
        ]
    )
}

/// The edit that a new asset comes with: `PHContentEditingOutput(placeholderForCreatedAsset:)` (spec T-22).
public struct NewEdit: Sendable, Hashable, JSONTabled {
    /// The rendered picture, upright.
    public var render: NewResource
    public var adjustmentData: AdjustmentData

    public init(render: NewResource, adjustmentData: AdjustmentData) {
        self.render = render
        self.adjustmentData = adjustmentData
    }

    public static let table = JSONTable(
        "NewEdit",
        "The edit that a new asset comes with.",
        unknown: .refused,
        blank: NewEdit(
            render: NewResource(source: .path("")),
            adjustmentData: AdjustmentData(formatIdentifier: "", formatVersion: "", attachment: 0)
        ),
        [
            .required("render", \.render, .object(NewResource.self), "The rendered picture, upright."),
            .required("adjustmentData", \.adjustmentData, .object(AdjustmentData.self), "How it was made."),
        ]
    )
}

/// Properties of an asset to be set: what is absent stays, null clears (spec S-76, T-27).
public struct AssetPatch: Sendable, Hashable, JSONTabled {
    public var isFavorite: Bool?
    public var isHidden: Bool?
    public var creationDate: Int64??
    public var creationOffset: Int??
    public var location: Location??
    public var caption: String??
    public var rating: Int?
    public var keywords: [String]?
    /// Picked by the user out of its burst (spec S-38).
    public var isUserPick: Bool?
    /// It stands for its burst, and the frame that did so far does not.
    public var representsBurst: Bool?
    public var playbackVariation: PlaybackVariation?

    public init(
        isFavorite: Bool? = nil,
        isHidden: Bool? = nil,
        creationDate: Int64?? = .none,
        creationOffset: Int?? = .none,
        location: Location?? = .none,
        caption: String?? = .none,
        rating: Int? = nil,
        keywords: [String]? = nil,
        isUserPick: Bool? = nil,
        representsBurst: Bool? = nil,
        playbackVariation: PlaybackVariation? = nil
    ) {
        self.isUserPick = isUserPick
        self.representsBurst = representsBurst
        self.playbackVariation = playbackVariation
        self.isFavorite = isFavorite
        self.isHidden = isHidden
        self.creationDate = creationDate
        self.creationOffset = creationOffset
        self.location = location
        self.caption = caption
        self.rating = rating
        self.keywords = keywords
    }

    /// Microseconds of the years 0001 to 9999.
    public static let dates: ClosedRange<Int64> = -62_135_596_800_000_000...253_402_300_799_999_999

    public static let table = JSONTable(
        "AssetPatch",
        "Properties to be set: what is absent stays, null clears.",
        unknown: .refused,
        blank: AssetPatch(),
        [
            .optional("isFavorite", \.isFavorite, .flag, "Marked as a favourite."),
            .optional("isHidden", \.isHidden, .flag, "Left out of usual fetches."),
            .patch("creationDate", \.creationDate, .integer(dates), "When it was taken."),
            .patch("creationOffset", \.creationOffset, .count(-86_400...86_400), "Seconds east of UTC."),
            .patch("location", \.location, .object(Location.self), "Where it was taken."),
            .patch("caption", \.caption, .text(maxBytes: 65_536), "Text about the picture; empty clears."),
            .optional("rating", \.rating, .count(0...5), "Stars."),
            .optional(
                "keywords",
                \.keywords,
                .list(of: .text(maxBytes: 1024), limit: 1024),
                "All the keywords it shall have."
            ),
            .optional("isUserPick", \.isUserPick, .flag, "Picked by the user out of its burst."),
            .optional("representsBurst", \.representsBurst, .flag, "True: it stands for its burst from now on."),
            .optional(
                "playbackVariation",
                \.playbackVariation,
                .name(PlaybackVariation.self),
                "Effect of a Live Photo."
            ),
        ]
    )
}

/// The description of an edit, opaque to the library: `PHAdjustmentData` (spec S-88).
public struct AdjustmentData: Sendable, Hashable, JSONTabled {
    /// Reverse DNS name of the format.
    public var formatIdentifier: String
    public var formatVersion: String
    /// Number of the attachment that holds the bytes, from 0.
    public var attachment: Int

    public init(formatIdentifier: String, formatVersion: String, attachment: Int) {
        self.formatIdentifier = formatIdentifier
        self.formatVersion = formatVersion
        self.attachment = attachment
    }

    /// The most bytes kept.
    public static let maxBytes = 2 << 20

    public static let table = JSONTable(
        "AdjustmentData",
        "The description of an edit, opaque to the library.",
        unknown: .refused,
        blank: AdjustmentData(formatIdentifier: "", formatVersion: "", attachment: 0),
        [
            .required("formatIdentifier", \.formatIdentifier, .text(maxBytes: 256), "Reverse DNS name of the format."),
            .required("formatVersion", \.formatVersion, .text(maxBytes: 64), "Version of the format."),
            .required("attachment", \.attachment, .count(0...1000), "Attachment that holds the bytes, from 0."),
        ]
    )
}

/// What happens when the bytes of a new asset are in the library already (spec P-23).
public enum DuplicateRule: String, Sendable, CaseIterable {
    /// The existing asset answers for the new one.
    case useExisting
    /// A second asset is made.
    case create
}
