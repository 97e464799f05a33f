public import JSONValue

extension ChangeRequest {
    /// Accepts a published edit. After the commit the edit is carried out even if processes are killed.
    ///
    /// Used by services, on behalf of the publisher.
    public struct AcceptEdit: Sendable, Hashable, JSONTabled {
        /// The id that the publisher chose.
        public var id: String
        /// The asset to be edited.
        public var asset: ObjectID
        /// The publisher's previous edit of the asset; nil if there is none.
        public var predecessor: String?
        /// The digest of the content. The same id with another digest is refused as `id_reused`.
        public var digest: String
        /// The published message. The catalog stores it without interpreting it.
        public var content: JSON

        public init(id: String, asset: ObjectID, predecessor: String? = nil, digest: String, content: JSON) {
            self.id = id
            self.asset = asset
            self.predecessor = predecessor
            self.digest = digest
            self.content = content
        }

        /// The maximum size of ``content`` in bytes.
        public static let maxContentBytes = 64 << 10

        public static let table = JSONTable(
            "edit.accept",
            "Accepts a published edit; no effect if it was accepted before. For services.",
            unknown: .refused,
            blank: AcceptEdit(id: "", asset: .none, digest: "", content: .null),
            [
                .required("id", \.id, .publishedEditID, "The publisher's name for it."),
                .required("asset", \.asset, .id(.asset), "The asset to be edited."),
                .optional("after", \.predecessor, .publishedEditID, "The publisher's previous edit of the asset."),
                .required("digest", \.digest, .text(maxBytes: 64), "Digest of the content."),
                .required("content", \.content, .any, "The published message, stored until the edit is finished."),
            ]
        )
    }

    /// Records that a published edit failed and will never be applied.
    ///
    /// Used by services, on behalf of the publisher.
    public struct FailEdit: Sendable, Hashable, JSONTabled {
        /// The id that the publisher chose.
        public var id: String
        /// The asset that was to be edited.
        public var asset: ObjectID
        /// The publisher's previous edit of the asset; nil if there is none.
        public var predecessor: String?
        /// The digest of the content, as in ``AcceptEdit``.
        public var digest: String
        /// The name of the error.
        public var errorName: String
        /// The reason for the failure, and what to do about it.
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
            "Ends a published edit with an error. If the id already has other content, only the refusal is recorded, as"
                + " id_reused, and the first edit continues. For services.",
            unknown: .refused,
            blank: FailEdit(id: "", asset: .none, digest: "", errorName: "", errorMessage: ""),
            [
                .required("id", \.id, .publishedEditID, "The publisher's name for it."),
                .required("asset", \.asset, .id(.asset), "The asset that was to be edited."),
                .optional("after", \.predecessor, .publishedEditID, "The publisher's previous edit of the asset."),
                .required("digest", \.digest, .text(maxBytes: 64), "Digest of the content."),
                .required("errorName", \.errorName, .text(maxBytes: 64), "Name of the error."),
                .required(
                    "errorMessage",
                    \.errorMessage,
                    .text(maxBytes: PublishedEdit.maxMessageBytes),
                    "The reason, and what to do about it."
                ),
            ]
        )
    }
}
