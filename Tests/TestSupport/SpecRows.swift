public import Testing

/// Names the rows of the specification that a test shows: `@Test(.spec("S-16", "T-07")) func …`.
///
/// Rows are `S-…`, `T-…`, `P-…` and the decisions `D…`. The Tidy tests read these marks out of the source: they print the
/// rows with a test, and hold the table in Shared/docs/photokit.md to them.
public struct SpecRows: TestTrait, SuiteTrait {
    public let rows: [String]

    public var isRecursive: Bool { false }
    /// Told beside a failure.
    public var comments: [Comment] { rows.map { "spec \($0)" } }
}

extension Trait where Self == SpecRows {
    /// The rows that the test shows.
    public static func spec(_ rows: String...) -> SpecRows { SpecRows(rows: rows) }
}
