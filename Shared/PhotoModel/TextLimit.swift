import JSONValue

/// The maximum lengths of the texts that clients set, in UTF-8 bytes, as sent and as stored.
public enum TextLimit {
    public static let title = 1024
    public static let caption = 65_536
    public static let keyword = 1024
    public static let filename = 1024
    public static let burstIdentifier = 128
    public static let formatIdentifier = 256
    public static let formatVersion = 64
}

extension JSONType where Value == String {
    /// Returns the type of text in a stored entity.
    ///
    /// Earlier versions applied the limit before normal form C, which makes a text up to three times as long. Records
    /// with such a text are decoded, because history, replicas and clients read every record. The schema is that of
    /// the limit itself: it counts characters, of which normal form C has at most as many as the text had bytes.
    static func storedText(maxBytes: Int) -> JSONType {
        let text = text(maxBytes: 3 * maxBytes)
        return JSONType(
            schema: ["type": "string", "maxLength": JSON(maxBytes)],
            decode: text.decode,
            encode: text.encode
        )
    }
}
