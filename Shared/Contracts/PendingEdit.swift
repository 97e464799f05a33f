public import JSONValue
public import PhotoModel

/// An accepted edit that is not finished.
public struct PendingEdit: Sendable, Hashable, JSONTabled {
    /// Identity of the publisher.
    public var publisher: String
    /// The transaction that accepted it.
    public var sequence: Int64
    /// The edit as it was accepted.
    public var accepted: ChangeRequest.AcceptEdit

    public init(publisher: String, sequence: Int64, accepted: ChangeRequest.AcceptEdit) {
        self.publisher = publisher
        self.sequence = sequence
        self.accepted = accepted
    }

    public static let table = JSONTable(
        "PendingEdit",
        "An accepted edit that is not finished.",
        unknown: .ignored,
        blank: PendingEdit(
            publisher: "",
            sequence: 0,
            accepted: ChangeRequest.AcceptEdit(id: "", asset: .none, digest: "", content: .null)
        ),
        [
            .required("publisher", \.publisher, .text(maxBytes: 256), "Identity of the publisher."),
            .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction that accepted it."),
            .required("accepted", \.accepted, .object(ChangeRequest.AcceptEdit.self), "The edit as it was accepted."),
        ]
    )
}
