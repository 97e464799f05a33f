public import JSONValue

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
                "The file at the path is removed after the commit. One with other hard links is refused.",
                default: false
            ),
            .defaulted(
                "verify",
                \.verifies,
                .flag,
                "Where the library has the bytes, its file is compared with them, and replaced if it is damaged.",
                default: false
            ),
            .optional(
                "originalFilename",
                \.originalFilename,
                .text(maxBytes: TextLimit.filename),
                "The file name at import."
            ),
        ]
    )
}
