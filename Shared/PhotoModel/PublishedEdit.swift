public import JSONValue

/// The state of a published edit.
public enum PublishedEditState: String, Sendable, CaseIterable {
    case accepted, applied, failed
}

/// A published edit in one of its states.
public struct PublishedEdit: Sendable, Hashable, JSONTabled {
    /// The id that the publisher chose.
    public var id: String
    /// The asset to be edited.
    public var asset: ObjectID
    /// The state.
    public var state: PublishedEditState
    /// The publisher's previous edit of the asset, after which this one is applied; nil for none.
    public var predecessor: String?
    /// The name of the error; nil if the edit has not failed.
    public var errorName: String?
    /// The cause of the failure, and its remedy; nil if the edit has not failed.
    public var errorMessage: String?
    /// For `id_reused`: the digest of the refused content (``ChangeRequest/AcceptEdit/digest``). The state is that of
    /// the first edit with the id, which is not affected; its publisher ignores this message. Nil for all others.
    public var refusedDigest: String?

    public init(
        id: String,
        asset: ObjectID,
        state: PublishedEditState,
        predecessor: String? = nil,
        errorName: String? = nil,
        errorMessage: String? = nil,
        refusedDigest: String? = nil
    ) {
        self.id = id
        self.asset = asset
        self.state = state
        self.predecessor = predecessor
        self.errorName = errorName
        self.errorMessage = errorMessage
        self.refusedDigest = refusedDigest
    }

    /// The maximum length of an id in bytes.
    public static let maxIDBytes = 48
    /// The maximum length of `errorMessage` in bytes.
    public static let maxMessageBytes = 4096

    public static let table = JSONTable(
        "PublishedEdit",
        "A published edit in one of its states.",
        unknown: .ignored,
        blank: PublishedEdit(id: "", asset: .none, state: .accepted),
        [
            .required("id", \.id, .text(maxBytes: maxIDBytes), "The publisher's name for the edit."),
            .required("asset", \.asset, .id(.asset), "The asset to be edited."),
            .required("state", \.state, .name(PublishedEditState.self), "The state."),
            .optional(
                "after",
                \.predecessor,
                .text(maxBytes: maxIDBytes),
                "The publisher's previous edit of the asset."
            ),
            .optional(
                "errorName",
                \.errorName,
                .text(maxBytes: 64),
                "Name of the error, if it failed; id_reused if other content with its id was refused."
            ),
            .optional(
                "errorMessage",
                \.errorMessage,
                .text(maxBytes: maxMessageBytes),
                "The reason for the failure, and what to do about it."
            ),
            .optional(
                "refusedDigest",
                \.refusedDigest,
                .text(maxBytes: 64),
                "For id_reused: the digest of the refused content; the state is that of the first edit with the id."
            ),
        ]
    )
}

extension JSONType where Value == String {
    /// The type of the id of a published edit, which is part of a feed topic and of log lines.
    public static var publishedEditID: JSONType {
        let maximum = PublishedEdit.maxIDBytes
        return JSONType(
            schema: ["type": "string", "minLength": 1, "maxLength": JSON(maximum), "pattern": "^[!-~]+$"],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue, (1...maximum).contains(text.utf8.count),
                    text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
                else { throw JSONProblem("expected 1 to \(maximum) printable ASCII characters without spaces") }
                return text
            },
            encode: { .string($0) }
        )
    }
}
