import JSONValue

/// The maximum lengths of the texts that clients set, in UTF-8 bytes, as sent and as stored.
public enum TextLimit {
    /// The title of an album or a folder.
    public static let title = 1024
    /// The caption of an asset.
    public static let caption = 65_536
    /// One keyword.
    public static let keyword = 1024
    /// The original name of a file.
    public static let filename = 1024
    /// The identifier of a burst.
    public static let burstIdentifier = 128
    /// The identifier of the format of adjustment data.
    public static let formatIdentifier = 256
    /// The version of the format of adjustment data.
    public static let formatVersion = 64
}

extension JSONType where Value == String {
    /// Returns the type of text in a stored entity.
    ///
    /// Earlier versions applied the limit before the text was normalized to NFC, which makes it up to three times as
    /// long. Records with such a text are decoded, because history, replicas and clients read every record. The schema
    /// states the limit itself: it counts characters, and text in NFC has at most as many characters as the original
    /// had bytes.
    static func storedText(maxBytes: Int) -> JSONType {
        let text = text(maxBytes: 3 * maxBytes)
        return JSONType(
            schema: ["type": "string", "maxLength": JSON(maxBytes)],
            decode: text.decode,
            encode: text.encode
        )
    }
}
