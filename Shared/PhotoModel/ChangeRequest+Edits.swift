public import JSONValue

extension ChangeRequest {
    /// A published edit is taken on: from then on it will be carried out, whatever is killed (DESIGN 3.5).
    ///
    /// For services, on behalf of the publisher.
    public struct AcceptEdit: Sendable, Hashable, JSONTabled {
        public var id: String
        public var asset: ObjectID
        public var predecessor: String?
        /// What makes one edit another: the same id with another digest is `id_reused`.
        public var digest: String
        /// What was published; the catalog keeps it and does not look into it.
        public var content: JSON

        public init(id: String, asset: ObjectID, predecessor: String? = nil, digest: String, content: JSON) {
            self.id = id
            self.asset = asset
            self.predecessor = predecessor
            self.digest = digest
            self.content = content
        }

        /// The most bytes of ``content``.
        public static let maxContentBytes = 64 << 10

        public static let table = JSONTable(
            "edit.accept",
            "Takes on a published edit; nothing happens where it was taken on before. For services.",
            unknown: .refused,
            blank: AcceptEdit(id: "", asset: .none, digest: "", content: .null),
            [
                .required("id", \.id, .editName, "The publisher's name for it."),
                .required("asset", \.asset, .id(.asset), "What is edited."),
                .optional("after", \.predecessor, .editName, "The publisher's previous edit of the asset."),
                .required("digest", \.digest, .text(maxBytes: 64), "Tells one content from another."),
                .required("content", \.content, .any, "What was published, kept until the edit is finished."),
            ]
        )
    }

    /// A published edit will never be applied.
    ///
    /// For services, on behalf of the publisher.
    public struct FailEdit: Sendable, Hashable, JSONTabled {
        public var id: String
        public var asset: ObjectID
        public var predecessor: String?
        public var digest: String
        public var errorName: String
        public var errorMessage: String

        public init(
            id: String,
            asset: ObjectID,
            predecessor: String? = nil,
            digest: String,
            errorName: String,
            errorMessage: String
        ) {
            self.id = id
            self.asset = asset
            self.predecessor = predecessor
            self.digest = digest
            self.errorName = errorName
            self.errorMessage = errorMessage
        }

        public static let table = JSONTable(
            "edit.fail",
            "Ends a published edit with an error. Under an id that has other content only the refusal is recorded, as"
                + " id_reused, and the edit that has the id goes on. For services.",
            unknown: .refused,
            blank: FailEdit(id: "", asset: .none, digest: "", errorName: "", errorMessage: ""),
            [
                .required("id", \.id, .editName, "The publisher's name for it."),
                .required("asset", \.asset, .id(.asset), "What was to be edited."),
                .optional("after", \.predecessor, .editName, "The publisher's previous edit of the asset."),
                .required("digest", \.digest, .text(maxBytes: 64), "Tells one content from another."),
                .required("errorName", \.errorName, .text(maxBytes: 64), "Why."),
                .required(
                    "errorMessage",
                    \.errorMessage,
                    .text(maxBytes: PublishedEdit.maxMessageBytes),
                    "Why, and what to do."
                ),
            ]
        )
    }
}
