import Basics
public import JSONValue
import PhotoModel

/// `edits.pending` of the catalog: accepted edits that are not finished, oldest first; for services.
public struct EditsPending: Request {
    public static let method = "edits.pending"
    /// The last sequence of the previous page; nil for the first page.
    public var after: Int64?
    /// Maximum number of edits.
    public var limit: Int

    public init(after: Int64? = nil, limit: Int = 500) {
        self.after = after
        self.limit = limit
    }

    public static let table = parameters(
        "Accepted edits that are not finished, oldest first. For services.",
        blank: EditsPending(),
        [
            .optional("after", \.after, .integer(0...Int64.max), "Only edits accepted after this sequence."),
            .defaulted("limit", \.limit, .count(1...1000), "Maximum number of edits.", default: 500),
        ]
    )

    public struct Result: JSONTabled {
        /// Oldest first.
        public var edits: [PendingEdit]
        /// The `after` of the next page; nil if this is the last page.
        public var next: Int64?

        public init(edits: [PendingEdit], next: Int64?) {
            self.edits = edits
            self.next = next
        }

        public static let table = JSONTable(
            "EditsPending",
            "Accepted edits that are not finished.",
            unknown: .ignored,
            blank: Result(edits: [], next: nil),
            [
                .required("edits", \.edits, .list(of: .object(PendingEdit.self), limit: 1000), "Oldest first."),
                .optional("next", \.next, .integer(0...Int64.max), "The after of the next page; absent on the last."),
            ]
        )
    }
}
