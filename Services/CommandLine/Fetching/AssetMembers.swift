/// The names of the members of assets that commands print or use.
///
/// A whole asset may have a megabyte of text, and a page of assets has at most 15 MiB: a command requests no more
/// members than it needs.
enum AssetMembers {
    /// The members that name an asset in a message.
    static let name = ["id", "originalFilename"]

    /// The members in a row of `safelight fetch`.
    static let row =
        name + [
            "creationDate", "creationOffset", "pixelWidth", "pixelHeight", "isFavorite", "isHidden", "mediaType",
            "adjustmentFormatIdentifier",
        ]

    /// The members on which the size of a requested image depends.
    static let image = ["id", "pixelWidth", "pixelHeight", "resources"]

    /// The members that an export of files or images needs.
    static let export = image + ["originalFilename"]

    /// The members for an image in a contact sheet as a web page, and for its caption.
    static let figure = export + ["creationDate", "creationOffset", "isFavorite", "rating", "caption", "keywords"]
}
