public import JSONValue

extension ChangeRequest {
    /// Creates a folder: `list.create` (S-80).
    public struct CreateList: Sendable, Hashable, JSONTabled {
        /// The placeholder of the new folder; nil if it is not referred to.
        public var ref: String?
        /// The identifier to give to the folder, which the client generated; nil for one of the catalog.
        public var id: ObjectID?
        public var title: String
        /// The folder to which it is appended; nil is the root.
        public var parent: ObjectReference?
        /// The albums and folders that move into it.
        public var add: [ObjectReference]

        public init(
            ref: String? = nil,
            title: String,
            parent: ObjectReference? = nil,
            add: [ObjectReference] = []
        ) {
            self.ref = ref
            self.title = title
            self.parent = parent
            self.add = add
        }

        public static let table = JSONTable(
            "list.create",
            "Creates a folder.",
            unknown: .refused,
            blank: CreateList(title: ""),
            [
                .ref(\.ref),
                .newID(\.id, .collectionList),
                .required("title", \.title, .text(maxBytes: TextLimit.title), "Its name."),
                .optional("parent", \.parent, .reference, "The folder to which it is appended; absent: the root."),
                .defaulted(
                    "add",
                    \.add,
                    .list(of: .reference, limit: ChangeRecord.maxEntities),
                    "Albums and folders that move into it.",
                    default: []
                ),
            ]
        )
    }

    /// Renames or rearranges a folder: `list.update` (T-24, T-25).
    public struct UpdateList: Sendable, Hashable, JSONTabled {
        /// The folder; the root can be rearranged but not renamed.
        public var id: ObjectReference
        /// The new name; nil keeps the present one.
        public var title: String?
        /// The operations on members, applied in order.
        public var edits: [MemberEdit]
        /// The token at which the indexes in `edits` were read; nil if there are no indexes.
        public var snapshot: ChangeToken?
        /// The revision that the folder must have; nil accepts any.
        public var ifRevision: Revision?

        public init(
            id: ObjectReference,
            title: String? = nil,
            edits: [MemberEdit] = [],
            snapshot: ChangeToken? = nil,
            ifRevision: Revision? = nil
        ) {
            self.id = id
            self.title = title
            self.edits = edits
            self.snapshot = snapshot
            self.ifRevision = ifRevision
        }

        public static let table = JSONTable(
            "list.update",
            "Renames a folder and rearranges its members. An added member leaves its previous folder; one that is "
                + "removed goes to the end of the root.",
            unknown: .refused,
            blank: UpdateList(id: .placeholder("")),
            [
                .required("id", \.id, .reference, "The folder; the root has a fixed id and no name."),
                .optional("title", \.title, .text(maxBytes: TextLimit.title), "Its new name."),
                .defaulted("edits", \.edits, .memberEdits, "Steps, in order.", default: []),
                .optional("snapshot", \.snapshot, .token, "The token at which the indexes were read."),
                .ifRevision(\.ifRevision),
            ]
        )
    }
}

extension JSONType where Value == [MemberEdit] {
    static var memberEdits: JSONType { .list(of: .memberEdit, limit: 100) }
}
