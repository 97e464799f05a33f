public import Testing

/// A trait that names the specification rows a test covers: `@Test(.spec("S-16", "T-07")) func …`.
///
/// Rows are `S-…`, `T-…`, `P-…` and the decisions `D…`. The Tidy tests read these marks from the source: they print the
/// rows with a test, and check the table in Shared/docs/photokit.md against them.
public struct SpecRows: TestTrait, SuiteTrait {
    /// The names of the rows.
    public let rows: [String]

    public var isRecursive: Bool { false }
    /// The text that is printed with a failure.
    public var comments: [Comment] { rows.map { "spec \($0)" } }
}

extension Trait where Self == SpecRows {
    /// Marks the rows that the test covers.
    public static func spec(_ rows: String...) -> SpecRows { SpecRows(rows: rows) }
}
