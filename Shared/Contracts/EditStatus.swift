import Basics
public import JSONValue
public import PhotoModel

/// The state of a published edit, and the transaction that recorded it.
public struct EditStatus: Sendable, Hashable, JSONTabled {
    /// The edit with its state.
    public var edit: PublishedEdit
    /// The transaction that recorded the state.
    public var sequence: Int64
    /// Digest of the edit's content: that of ``ChangeRequest/AcceptEdit``.
    public var digest: String

    public init(edit: PublishedEdit, sequence: Int64, digest: String) {
        self.edit = edit
        self.sequence = sequence
        self.digest = digest
    }

    public static let table = JSONTable(
        "EditStatus",
        "The state of a published edit, and the transaction that recorded it.",
        unknown: .ignored,
        blank: EditStatus(edit: PublishedEdit(id: "", asset: .none, state: .accepted), sequence: 0, digest: ""),
        [
            .required("id", \.edit.id, .text(maxBytes: PublishedEdit.maxIDBytes), "Id of the edit."),
            .required("asset", \.edit.asset, .id(.asset), "The edited asset."),
            .required("state", \.edit.state, .name(PublishedEditState.self), "State of the edit."),
            .optional(
                "after",
                \.edit.predecessor,
                .text(maxBytes: PublishedEdit.maxIDBytes),
                "Id of the edit that this one is applied after."
            ),
            .optional("errorName", \.edit.errorName, .text(maxBytes: 64), "Name of the error if it failed."),
            .optional(
                "errorMessage",
                \.edit.errorMessage,
                .text(maxBytes: PublishedEdit.maxMessageBytes),
                "The cause of the failure, and its remedy."
            ),
            .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction that recorded the state."),
            .defaulted("digest", \.digest, .text(maxBytes: 64), "Digest of its content.", default: ""),
        ]
    )
}
