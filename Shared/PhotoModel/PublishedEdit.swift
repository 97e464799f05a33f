public import JSONValue

/// Where a published edit stands (DESIGN 3.5).
public enum PublishedEditState: String, Sendable, CaseIterable {
    case accepted, applied, failed
}

/// A published edit at one of its states.
public struct PublishedEdit: Sendable, Hashable, JSONTabled {
    /// The publisher's own name for the edit.
    public var id: String
    public var asset: ObjectID
    public var state: PublishedEditState
    /// The publisher's previous edit of the asset.
    public var predecessor: String?
    /// Why it failed: the error's name and what to do.
    public var errorName: String?
    public var errorMessage: String?
    /// Of an `id_reused`: the digest of what was refused (``PublishEdit/digest``). The edit that has the id goes on, and
    /// whoever published that one passes this over.
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

    /// The longest identifier, in bytes.
    public static let maxNameBytes = 48
    /// The longest `errorMessage`, in bytes.
    public static let maxMessageBytes = 4096

    public static let table = JSONTable(
        "PublishedEdit",
        "A published edit at one of its states.",
        unknown: .ignored,
        blank: PublishedEdit(id: "", asset: .none, state: .accepted),
        [
            .required("id", \.id, .text(maxBytes: maxNameBytes), "The publisher's name for the edit."),
            .required("asset", \.asset, .id(.asset), "What is edited."),
            .required("state", \.state, .name(PublishedEditState.self), "Where it stands."),
            .optional(
                "after",
                \.predecessor,
                .text(maxBytes: maxNameBytes),
                "The publisher's previous edit of the asset."
            ),
            .optional("errorName", \.errorName, .text(maxBytes: 64), "Why it failed."),
            .optional(
                "errorMessage",
                \.errorMessage,
                .text(maxBytes: maxMessageBytes),
                "Why it failed, and what to do."
            ),
            .optional(
                "refusedDigest",
                \.refusedDigest,
                .text(maxBytes: 64),
                "Of id_reused: the digest of what was refused; the edit that has the id goes on."
            ),
        ]
    )
}

extension JSONType where Value == String {
    /// The name of a published edit: it is part of a topic of the feed, and of log lines.
    public static var editName: JSONType {
        let most = PublishedEdit.maxNameBytes
        return JSONType(
            schema: ["type": "string", "minLength": 1, "maxLength": JSON(most), "pattern": "^[!-~]+$"],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue, (1...most).contains(text.utf8.count),
                    text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
                else { throw JSONProblem("expected 1 to \(most) printable ASCII characters without spaces") }
                return text
            },
            encode: { .string($0) }
        )
    }
}
