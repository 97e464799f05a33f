public import JSONValue

/// A reference to an entity, which may be created by an earlier request of the same transaction (S-09, S-79).
public enum ObjectReference: Sendable, Hashable {
    case id(ObjectID)
    /// The `ref` of a create request: PhotoKit's placeholder object.
    case placeholder(String)

    /// The maximum length of a placeholder in bytes.
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

/// The source of the bytes of a resource.
public enum ResourceSource: Sendable, Hashable {
    /// The attachment of the message with this index, from 0.
    case attachment(Int)
    /// The id of a finished upload.
    case upload(String)
    /// A file on the catalog's machine below a configured folder. Accepted over `ipc://` only.
    case path(String)
}

/// A resource of a new asset (T-19, T-21). Exactly one of `attachment`, `upload` and `path` is set.
public struct NewResource: Sendable, Hashable, JSONTabled {
    /// The role of the file in the asset.
    public var type: ResourceType
    /// The index of an attachment of the message, from 0.
    public var attachment: Int?
    /// The id of a finished upload.
    public var upload: String?
    /// The path of a file on the catalog's machine; over `ipc://` only.
    public var path: String?
    /// True if the file at the path is referenced in place and not copied.
    public var isReferenced: Bool
    /// True if the file at the path is removed after the commit: PhotoKit's `shouldMoveFile` (T-21).
    public var isMoved: Bool
    /// True if the library's file of known bytes is read, compared and replaced if it is damaged.
    public var verifies: Bool
    /// The file name at import; if nil and there is a path, the name of that file.
    public var originalFilename: String?

    public init(
        type: ResourceType = .photo,
        source: ResourceSource,
        originalFilename: String? = nil,
        isReferenced: Bool = false,
        isMoved: Bool = false,
        verifies: Bool = false
    ) {
        self.isMoved = isMoved
        self.verifies = verifies
        self.type = type
        self.originalFilename = originalFilename
        self.isReferenced = isReferenced
        switch source {
        case .attachment(let index): attachment = index
        case .upload(let upload): self.upload = upload
        case .path(let path): self.path = path
        }
    }

    /// The source of the bytes; nil unless exactly one is set.
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
        "A file to import: exactly one of attachment, upload and path.",
        unknown: .refused,
        blank: NewResource(source: .path("")),
        [
            .defaulted("type", \.type, .name(ResourceType.self), "The role of the file in the asset.", default: .photo),
            .optional("attachment", \.attachment, .count(0...1000), "Index of the attachment, from 0."),
            .optional("upload", \.upload, .text(maxBytes: 64), "Id of a finished upload."),
            .optional("path", \.path, .text(maxBytes: 4096), "A file on the catalog's machine; over ipc only."),
            .defaulted(
                "reference",
                \.isReferenced,
                .flag,
                "The file at the path is referenced in place, not copied, and checked each time it is opened.",
                default: false
            ),
            .defaulted(
                "move",
                \.isMoved,
                .flag,
                "The file at the path is removed after the commit, unless it has other hard links.",
                default: false
            ),
            .defaulted(
                "verify",
                \.verifies,
                .flag,
                "Where the library has the bytes, its file is compared with them, and replaced if it is damaged.",
                default: false
            ),
            .optional("originalFilename", \.originalFilename, .text(maxBytes: 1024), "The file name at import."),
        ]
    )
}

/// An edit that is applied to a new asset: `PHContentEditingOutput(placeholderForCreatedAsset:)` (T-22).
public struct NewEdit: Sendable, Hashable, JSONTabled {
    /// The rendered image with orientation applied.
    public var render: NewResource
    /// The description of the edit.
    public var adjustmentData: AdjustmentData

    public init(render: NewResource, adjustmentData: AdjustmentData) {
        self.render = render
        self.adjustmentData = adjustmentData
    }

    public static let table = JSONTable(
        "NewEdit",
        "An edit that is applied to a new asset.",
        unknown: .refused,
        blank: NewEdit(
            render: NewResource(source: .path("")),
            adjustmentData: AdjustmentData(formatIdentifier: "", formatVersion: "", attachment: 0)
        ),
        [
            .required("render", \.render, .object(NewResource.self), "The rendered image, upright."),
            .required("adjustmentData", \.adjustmentData, .object(AdjustmentData.self), "The description of the edit."),
        ]
    )
}

/// Asset properties to set. Absent members stay unchanged, null clears (S-76, T-27).
public struct AssetPatch: Sendable, Hashable, JSONTabled {
    public var isFavorite: Bool?
    public var isHidden: Bool?
    /// Microseconds since 1970, in ``dates``.
    public var creationDate: Int64??
    /// Seconds east of UTC.
    public var creationOffset: Int??
    public var location: Location??
    public var caption: String??
    /// 0 (unrated) to 5.
    public var rating: Int?
    /// The complete list of keywords.
    public var keywords: [String]?
    /// True if the user picked it from its burst (S-38).
    public var isUserPick: Bool?
    /// True makes the asset the representative of its burst in place of the previous one.
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

    /// The years 0001 to 9999 in microseconds.
    public static let dates: ClosedRange<Int64> = -62_135_596_800_000_000...253_402_300_799_999_999

    public static let table = JSONTable(
        "AssetPatch",
        "Properties to set. Absent members stay unchanged, null clears.",
        unknown: .refused,
        blank: AssetPatch(),
        [
            .optional("isFavorite", \.isFavorite, .flag, "Marked as a favourite."),
            .optional("isHidden", \.isHidden, .flag, "Excluded from fetches by default."),
            .patch("creationDate", \.creationDate, .integer(dates), "When it was taken."),
            .patch("creationOffset", \.creationOffset, .count(-86_400...86_400), "Seconds east of UTC."),
            .patch("location", \.location, .object(Location.self), "Where it was taken."),
            .patch("caption", \.caption, .text(maxBytes: 65_536), "The caption; empty clears."),
            .optional("rating", \.rating, .count(0...5), "Stars."),
            .optional(
                "keywords",
                \.keywords,
                .list(of: .text(maxBytes: 1024), limit: 1024),
                "The complete list of keywords."
            ),
            .optional("isUserPick", \.isUserPick, .flag, "Picked by the user from its burst."),
            .optional("representsBurst", \.representsBurst, .flag, "True: it represents its burst from now on."),
            .optional(
                "playbackVariation",
                \.playbackVariation,
                .name(PlaybackVariation.self),
                "Effect of a Live Photo."
            ),
        ]
    )
}

/// The description of an edit, opaque to the library: `PHAdjustmentData` (S-88).
public struct AdjustmentData: Sendable, Hashable, JSONTabled {
    /// The identifier of the format in reverse DNS notation.
    public var formatIdentifier: String
    public var formatVersion: String
    /// The index of the attachment with the bytes, from 0.
    public var attachment: Int

    public init(formatIdentifier: String, formatVersion: String, attachment: Int) {
        self.formatIdentifier = formatIdentifier
        self.formatVersion = formatVersion
        self.attachment = attachment
    }

    /// The maximum size of the data in bytes.
    public static let maxBytes = 2 << 20

    public static let table = JSONTable(
        "AdjustmentData",
        "The description of an edit, opaque to the library.",
        unknown: .refused,
        blank: AdjustmentData(formatIdentifier: "", formatVersion: "", attachment: 0),
        [
            .required("formatIdentifier", \.formatIdentifier, .text(maxBytes: 256), "Format in reverse DNS notation."),
            .required("formatVersion", \.formatVersion, .text(maxBytes: 64), "Version of the format."),
            .required("attachment", \.attachment, .count(0...1000), "Index of the attachment with the bytes, from 0."),
        ]
    )
}

/// The rule for a new asset whose bytes are already in the library (P-23).
public enum DuplicateRule: String, Sendable, CaseIterable {
    /// The request returns the existing asset.
    case useExisting
    /// A second asset is created.
    case create
}
