public import JSONValue

/// A file that belongs to an asset: `PHAssetResource` (T-30).
public struct AssetResource: Sendable, Hashable, JSONTabled {
    /// The role of the file in the asset.
    public var type: ResourceType
    /// SHA-256 of the bytes, 64 lower-case hexadecimal digits; of a part, that of the whole file.
    public var digest: String
    /// Size in bytes.
    public var size: Int64
    /// The position of its first byte in the file with this digest, if it is a part of that file, such as the video of
    /// a motion photo. Nil if it is the whole file.
    public var offset: Int64?
    /// Uniform type identifier, for example `public.jpeg`.
    public var contentType: String
    /// The file name at import; nil if unknown.
    public var originalFilename: String?
    /// Width in pixels after orientation; 0 if the resource is not an image.
    public var pixelWidth: Int
    /// Height in pixels after orientation; 0 if the resource is not an image.
    public var pixelHeight: Int
    /// Microseconds; nil if the resource is not a video.
    public var duration: Int64?
    /// The reason why the image, or a part of it, cannot be shown: it is damaged, or too large. Nil if none is known.
    /// The bytes are stored unchanged either way.
    public var damage: String?
    /// False if the bytes are in remote storage only, in pages of a library with an object store. Change records do not
    /// contain it, because it is not part of the history.
    public var isLocallyAvailable = true

    /// The maximum length of `damage` in bytes.
    public static let maxDamageBytes = 512

    public init(
        type: ResourceType,
        digest: String,
        size: Int64,
        offset: Int64? = nil,
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
        self.offset = offset
        self.contentType = contentType
        self.originalFilename = originalFilename
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
        self.duration = duration
        self.damage = damage
    }

    public static let table = JSONTable(
        "AssetResource",
        "A file that belongs to an asset.",
        unknown: .ignored,
        blank: AssetResource(type: .photo, digest: "", size: 0, contentType: ""),
        [
            .required("type", \.type, .name(ResourceType.self), "The role of the file in the asset."),
            .required(
                "digest",
                \.digest,
                .text(maxBytes: 64),
                "SHA-256 of the bytes, in hexadecimal; of a part, that of the whole file."
            ),
            .required("size", \.size, .integer(0...Int64.max), "Bytes."),
            .optional(
                "offset",
                \.offset,
                .integer(0...Int64.max),
                "Position of its first byte in the file with this digest, if it is a part of that file."
            ),
            .required("contentType", \.contentType, .text(maxBytes: 128), "Uniform type identifier."),
            .optional(
                "originalFilename",
                \.originalFilename,
                .storedText(maxBytes: TextLimit.filename),
                "The file name at import."
            ),
            .required(
                "pixelWidth",
                \.pixelWidth,
                .count(0...Asset.maxSide),
                "Pixels after orientation, 0 if no image."
            ),
            .required(
                "pixelHeight",
                \.pixelHeight,
                .count(0...Asset.maxSide),
                "Pixels after orientation, 0 if no image."
            ),
            .optional("duration", \.duration, .integer(0...Int64.max), "Microseconds; absent if not a video."),
            .optional(
                "damage",
                \.damage,
                .text(maxBytes: maxDamageBytes),
                "The reason why the image, or a part of it, cannot be shown: damage, or too many pixels."
            ),
            .defaulted(
                "locallyAvailable",
                \.isLocallyAvailable,
                .flag,
                "False if the bytes are in remote storage only; in pages, not in change records.",
                default: true
            ),
        ]
    )
}
