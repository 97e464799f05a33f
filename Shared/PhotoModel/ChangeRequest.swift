public import JSONValue

/// One request of a transaction: `PHAssetChangeRequest` and its siblings (spec section 10).
public enum ChangeRequest: Sendable, Hashable {
    case createAsset(CreateAsset)
    case updateAsset(UpdateAsset)
    case deleteAssets(DeleteObjects)
    case editAsset(EditAsset)
    case revertAsset(RevertAsset)
    case createCollection(CreateCollection)
    case updateCollection(UpdateCollection)
    case deleteCollections(DeleteObjects)
    case trashAssets(DeleteObjects)
    case restoreAssets(DeleteObjects)
    case createList(CreateList)
    case updateList(UpdateList)
    case deleteLists(DeleteObjects)
    case acceptEdit(AcceptEdit)
    case failEdit(FailEdit)

    public struct CreateAsset: Sendable, Hashable, JSONTabled {
        public var ref: String?
        public var resources: [NewResource]
        public var set: AssetPatch
        public var sourceType: SourceType
        public var ifDuplicate: DuplicateRule
        public var burst: NewBurst?
        /// An XMP file about the picture: what it says goes before what the picture says, but for the date.
        public var sidecar: NewResource?
        /// It is edited from the start; not for bytes that the library has already.
        public var edit: NewEdit?

        public init(
            ref: String? = nil,
            resources: [NewResource],
            set: AssetPatch = AssetPatch(),
            sourceType: SourceType = .typeUserLibrary,
            ifDuplicate: DuplicateRule = .useExisting,
            burst: NewBurst? = nil,
            sidecar: NewResource? = nil,
            edit: NewEdit? = nil
        ) {
            self.edit = edit
            self.burst = burst
            self.sidecar = sidecar
            self.ref = ref
            self.resources = resources
            self.set = set
            self.sourceType = sourceType
            self.ifDuplicate = ifDuplicate
        }

        public static let table = JSONTable(
            "asset.create",
            "Takes an asset into the library.",
            unknown: .refused,
            blank: CreateAsset(resources: []),
            [
                .ref(\.ref),
                .required("resources", \.resources, .list(of: .object(NewResource.self), limit: 16), "Its bytes."),
                .defaulted("set", \.set, .object(AssetPatch.self), "Properties to be set.", default: AssetPatch()),
                .defaulted(
                    "sourceType",
                    \.sourceType,
                    .name(SourceType.self),
                    "Where it comes from.",
                    default: .typeUserLibrary
                ),
                .defaulted(
                    "ifDuplicate",
                    \.ifDuplicate,
                    .name(DuplicateRule.self),
                    "What happens when the library has the bytes already.",
                    default: .useExisting
                ),
                .optional("burst", \.burst, .object(NewBurst.self), "The burst that it is a frame of."),
                .optional(
                    "sidecar",
                    \.sidecar,
                    .object(NewResource.self),
                    "An XMP file about it: rating, keywords, caption and place go before the picture's own; its date "
                        + "counts where the picture has none. It is read, not kept."
                ),
                .optional(
                    "edit",
                    \.edit,
                    .object(NewEdit.self),
                    "The edit that it comes with; passed over where the library has the bytes already."
                ),
            ]
        )
    }

    public struct UpdateAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectReference
        public var set: AssetPatch
        public var addKeywords: [String]
        public var removeKeywords: [String]
        public var ifRevision: Revision?

        public init(
            id: ObjectReference,
            set: AssetPatch = AssetPatch(),
            addKeywords: [String] = [],
            removeKeywords: [String] = [],
            ifRevision: Revision? = nil
        ) {
            self.id = id
            self.set = set
            self.addKeywords = addKeywords
            self.removeKeywords = removeKeywords
            self.ifRevision = ifRevision
        }

        private static let words = JSONType<[String]>.list(of: .text(maxBytes: 1024), limit: 1024)

        public static let table = JSONTable(
            "asset.update",
            "Sets properties of an asset.",
            unknown: .refused,
            blank: UpdateAsset(id: .placeholder(""), set: AssetPatch()),
            [
                .required("id", \.id, .reference, "The asset."),
                .defaulted(
                    "set",
                    \.set,
                    .object(AssetPatch.self),
                    "Properties to be set.",
                    default: AssetPatch(),
                    isWritten: true
                ),
                .defaulted("addKeywords", \.addKeywords, words, "Keywords it shall have too.", default: []),
                .defaulted("removeKeywords", \.removeKeywords, words, "Keywords it shall not have.", default: []),
                .ifRevision(\.ifRevision),
            ]
        )
    }

    public struct DeleteObjects: Sendable, Hashable, JSONTabled {
        public var ids: [ObjectID]

        public init(ids: [ObjectID]) { self.ids = ids }

        public static let table = JSONTable(
            "delete",
            "Deletes assets; or collections without their assets, folders with all that is below them; or moves assets "
                + "into the trash and out of it.",
            unknown: .refused,
            blank: DeleteObjects(ids: []),
            [.required("ids", \.ids, .list(of: .id(), limit: ChangeRecord.maxEntities), "What is deleted.")]
        )
    }

    public struct EditAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectID
        /// The rendered picture, upright, or the rendered video.
        public var render: NewResource
        public var adjustmentData: AdjustmentData
        public var ifContentRevision: Revision?
        /// What `editing.begin` answered: it says which version the edit began with, and takes the place of
        /// `ifContentRevision`.
        public var inputToken: EditInputToken?
        /// The published edit that this one carries out; it is `applied` in the same transaction. For services.
        public var publishedEdit: String?

        public init(
            id: ObjectID,
            render: NewResource,
            adjustmentData: AdjustmentData,
            ifContentRevision: Revision? = nil,
            inputToken: EditInputToken? = nil,
            publishedEdit: String? = nil
        ) {
            self.publishedEdit = publishedEdit
            self.id = id
            self.render = render
            self.adjustmentData = adjustmentData
            self.ifContentRevision = ifContentRevision
            self.inputToken = inputToken
        }

        public static let table = JSONTable(
            "asset.edit",
            "Commits an edit: `PHContentEditingOutput` (spec S-89, S-90).",
            unknown: .refused,
            blank: EditAsset(
                id: .none,
                render: NewResource(source: .path("")),
                adjustmentData: AdjustmentData(formatIdentifier: "", formatVersion: "", attachment: 0)
            ),
            [
                .required("id", \.id, .id(.asset), "The asset."),
                .required("render", \.render, .object(NewResource.self), "The rendered picture, upright, or video."),
                .required("adjustmentData", \.adjustmentData, .object(AdjustmentData.self), "How it was made."),
                .ifContentRevision(\.ifContentRevision),
                .optional(
                    "inputToken",
                    \.inputToken,
                    .editInput,
                    "What editing.begin answered; refused as conflict when the pixels have changed since."
                ),
                .publishedEdit(\.publishedEdit),
            ]
        )
    }

    public struct RevertAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectID
        public var ifContentRevision: Revision?
        /// Which original is shown from now on (spec T-26); nil: the one that was.
        public var base: OriginalChoice?
        /// The published edit that this one carries out, as in ``EditAsset``. For services.
        public var publishedEdit: String?

        public init(
            id: ObjectID,
            ifContentRevision: Revision? = nil,
            base: OriginalChoice? = nil,
            publishedEdit: String? = nil
        ) {
            self.id = id
            self.ifContentRevision = ifContentRevision
            self.base = base
            self.publishedEdit = publishedEdit
        }

        public static let table = JSONTable(
            "asset.revert",
            "Discards all edits of an asset (spec S-92).",
            unknown: .refused,
            blank: RevertAsset(id: .none),
            [
                .required("id", \.id, .id(.asset), "The asset."),
                .ifContentRevision(\.ifContentRevision),
                .shownOriginal(\.base),
                .publishedEdit(\.publishedEdit),
            ]
        )
    }

    public struct CreateCollection: Sendable, Hashable, JSONTabled {
        public var ref: String?
        public var title: String
        public var add: [ObjectReference]
        /// The folder it stands in, at the end; nil: the root.
        public var parent: ObjectReference?

        public init(
            ref: String? = nil,
            title: String,
            add: [ObjectReference] = [],
            parent: ObjectReference? = nil
        ) {
            self.ref = ref
            self.title = title
            self.add = add
            self.parent = parent
        }

        public static let table = JSONTable(
            "collection.create",
            "Makes an album.",
            unknown: .refused,
            blank: CreateCollection(title: ""),
            [
                .ref(\.ref),
                .required("title", \.title, .text(maxBytes: 1024), "Its name."),
                .defaulted(
                    "add",
                    \.add,
                    .list(of: .reference, limit: ChangeRecord.maxEntities),
                    "Its first members.",
                    default: []
                ),
                .optional("parent", \.parent, .reference, "The folder it stands in, at the end; absent: the root."),
            ]
        )
    }

    public struct UpdateCollection: Sendable, Hashable, JSONTabled {
        public var id: ObjectReference
        public var title: String?
        public var add: [ObjectReference]
        public var remove: [ObjectID]
        /// The cover.
        public var keyAsset: ObjectID??
        public var edits: [MemberEdit]
        public var snapshot: ChangeToken?
        /// The fetch whose indexes `edits` name; nil: that of the album without options.
        public var snapshotFetch: FetchDescription?
        public var ifRevision: Revision?

        public init(
            id: ObjectReference,
            title: String? = nil,
            add: [ObjectReference] = [],
            remove: [ObjectID] = [],
            keyAsset: ObjectID?? = Optional<ObjectID?>.none,
            edits: [MemberEdit] = [],
            snapshot: ChangeToken? = nil,
            snapshotFetch: FetchDescription? = nil,
            ifRevision: Revision? = nil
        ) {
            self.keyAsset = keyAsset
            self.edits = edits
            self.snapshot = snapshot
            self.snapshotFetch = snapshotFetch
            self.id = id
            self.title = title
            self.add = add
            self.remove = remove
            self.ifRevision = ifRevision
        }

        public static let table = JSONTable(
            "collection.update",
            "Renames an album, removes members, adds members at its end, then carries out the steps of edits.",
            unknown: .refused,
            blank: UpdateCollection(id: .placeholder("")),
            [
                .required("id", \.id, .reference, "The album."),
                .optional("title", \.title, .text(maxBytes: 1024), "Its new name."),
                .defaulted(
                    "add",
                    \.add,
                    .list(of: .reference, limit: ChangeRecord.maxEntities),
                    "Assets to append; members stay where they are.",
                    default: []
                ),
                .defaulted(
                    "remove",
                    \.remove,
                    .list(of: .id(.asset), limit: ChangeRecord.maxEntities),
                    "Assets to take out; others are passed over.",
                    default: []
                ),
                .patch("keyAsset", \.keyAsset, .id(.asset), "The cover, a member; null: the first members."),
                .defaulted("edits", \.edits, .memberEdits, "Steps, in order.", default: []),
                .optional("snapshot", \.snapshot, .token, "The moment at which the indexes in edits were read."),
                .optional(
                    "snapshotFetch",
                    \.snapshotFetch,
                    .object(FetchDescription.self),
                    "The fetch in whose result they stand; absent: the album's without options."
                ),
                .ifRevision(\.ifRevision),
            ]
        )
    }
}
