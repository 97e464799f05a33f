public import JSONValue

/// A person in an image.
public struct Person: Sendable, Hashable, JSONTabled {
    /// The name.
    public var name: String
    /// The area of the face; nil if unknown.
    public var area: UnitRect?

    public init(name: String, area: UnitRect? = nil) {
        self.name = name
        self.area = area
    }

    public static let table = JSONTable(
        "Person",
        "A person in an image.",
        unknown: .ignored,
        blank: Person(name: ""),
        [
            .required("name", \.name, .text(maxBytes: AssetMetadata.maxTextBytes), "The name."),
            .optional("area", \.area, .object(UnitRect.self), "Where the face is in the displayed original."),
        ]
    )
}
