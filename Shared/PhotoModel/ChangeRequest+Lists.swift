public import JSONValue

extension ChangeRequest {
    /// `list.create` (spec S-80)
    public struct CreateList: Sendable, Hashable, JSONTabled {
        public var ref: String?
        public var title: String
        /// The folder it stands in, at the end; nil: the root.
        public var parent: ObjectReference?
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
            "Makes a folder.",
            unknown: .refused,
            blank: CreateList(title: ""),
            [
                .ref(\.ref),
                .required("title", \.title, .text(maxBytes: 1024), "Its name."),
                .optional("parent", \.parent, .reference, "The folder it stands in, at the end; absent: the root."),
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

    /// `list.update` (spec T-24, T-25)
    public struct UpdateList: Sendable, Hashable, JSONTabled {
        public var id: ObjectReference
        public var title: String?
        public var edits: [MemberEdit]
        public var snapshot: ChangeToken?
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
            "Renames a folder and rearranges what is in it. What comes into it leaves the folder it was in; what is taken "
                + "out goes to the end of the root.",
            unknown: .refused,
            blank: UpdateList(id: .placeholder("")),
            [
                .required("id", \.id, .reference, "The folder; the root has a fixed identifier and no name."),
                .optional("title", \.title, .text(maxBytes: 1024), "Its new name."),
                .defaulted("edits", \.edits, .memberEdits, "Steps, in order.", default: []),
                .optional("snapshot", \.snapshot, .token, "The moment at which the indexes were read."),
                .ifRevision(\.ifRevision),
            ]
        )
    }
}

extension JSONType where Value == [MemberEdit] {
    static var memberEdits: JSONType { .list(of: .memberEdit, limit: 100) }
}

/// A burst made up of assets that are taken in one by one (spec P-21).
public struct NewBurst: Sendable, Hashable, JSONTabled {
    /// Shared by its frames.
    public var identifier: String
    /// Whether this frame stands for the burst; the last one that says so does.
    public var isRepresentative: Bool
    public var selection: BurstSelectionTypes

    public init(identifier: String, isRepresentative: Bool = false, selection: BurstSelectionTypes = []) {
        self.identifier = identifier
        self.isRepresentative = isRepresentative
        self.selection = selection
    }

    public static let table = JSONTable(
        "NewBurst",
        "The burst that a new asset is a frame of.",
        unknown: .refused,
        blank: NewBurst(identifier: ""),
        [
            .required("identifier", \.identifier, .text(maxBytes: 128), "Shared by its frames."),
            .defaulted("representative", \.isRepresentative, .flag, "It stands for the burst.", default: false),
            .defaulted(
                "selection",
                \.selection,
                .bits(BurstSelectionTypes.self),
                "Picked by whom.",
                default: []
            ),
        ]
    )
}
