import Basics
public import JSONValue
import PhotoModel

/// `edits.pending` of the catalog: accepted edits that are not finished, oldest first; for services.
public struct EditsPending: Request {
    public static let method = "edits.pending"
    /// Only edits accepted after this sequence: ``Result/next`` of the previous page; nil for the first page.
    public var after: Int64?
    /// Maximum number of edits.
    public var limit: Int
    /// The name of the editor that will apply the edits, the same after a restart; nil to read them only. The editor
    /// gets those that no other editor has: they are its own until they are finished, or its connection has ended for
    /// some time.
    public var editor: String?
    /// With `editor`: time in milliseconds to wait for an edit, if there is none.
    public var wait: Int

    public init(after: Int64? = nil, limit: Int = 500, editor: String? = nil, wait: Int = 0) {
        self.after = after
        self.limit = limit
        self.editor = editor
        self.wait = wait
    }

    public static let table = parameters(
        "Accepted edits that are not finished, oldest first; with editor, those that it may apply. For services.",
        blank: EditsPending(),
        [
            .optional("after", \.after, .integer(0...Int64.max), "Only edits accepted after this sequence."),
            .defaulted("limit", \.limit, .count(1...1000), "Maximum number of edits.", default: 500),
            .optional(
                "editor",
                \.editor,
                .text(maxBytes: 512),
                "Name of the editor that will apply them: it gets those that no other editor has."
            ),
            .defaulted(
                "wait",
                \.wait,
                .count(0...60_000),
                "With editor: time in milliseconds to wait for an edit.",
                default: 0
            ),
        ]
    )

    /// A page of accepted edits that are not finished.
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
