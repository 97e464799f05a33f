public import JSONValue

/// A sort descriptor in wire form, before its key is checked against a class.
public struct SortDescription: Sendable, Hashable, JSONTabled {
    /// The name or alias of a key of the class that is fetched.
    public var key: String
    public var ascending: Bool

    public init(key: String, ascending: Bool = true) {
        self.key = key
        self.ascending = ascending
    }

    public static let table = JSONTable(
        "SortDescriptor",
        "A key of a sort order. Entities without a value sort last.",
        unknown: .refused,
        blank: SortDescription(key: ""),
        [
            .required("key", \.key, .text(maxBytes: 100), "A key of the class that is fetched."),
            .defaulted("ascending", \.ascending, .flag, "Smallest first.", default: true, isWritten: true),
        ]
    )
}
