public import JSONValue

/// The description of an edit, opaque to the library: `PHAdjustmentData` (S-88).
public struct AdjustmentData: Sendable, Hashable, JSONTabled {
    /// The identifier of the format in reverse DNS notation.
    public var formatIdentifier: String
    /// The version of the format.
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
            .required(
                "formatIdentifier",
                \.formatIdentifier,
                .name(maxBytes: TextLimit.formatIdentifier),
                "Format in reverse DNS notation, not empty."
            ),
            .required(
                "formatVersion",
                \.formatVersion,
                .text(maxBytes: TextLimit.formatVersion),
                "Version of the format."
            ),
            .required("attachment", \.attachment, .count(0...1000), "Index of the attachment with the bytes, from 0."),
        ]
    )
}
