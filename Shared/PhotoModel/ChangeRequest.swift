public import JSONValue

/// One request of a transaction: `PHAssetChangeRequest` and its siblings.
///
/// The largest requests are stored indirectly, so that common ones, of which a transaction may have a thousand, are
/// small.
public enum ChangeRequest: Sendable, Hashable {
    indirect case createAsset(CreateAsset)
    case updateAsset(UpdateAsset)
    case deleteAssets(ObjectIDs)
    indirect case editAsset(EditAsset)
    case revertAsset(RevertAsset)
    case createCollection(CreateCollection)
    indirect case updateCollection(UpdateCollection)
    case deleteCollections(ObjectIDs)
    case trashAssets(ObjectIDs)
    case restoreAssets(ObjectIDs)
    case createList(CreateList)
    case updateList(UpdateList)
    case deleteLists(ObjectIDs)
    case acceptEdit(AcceptEdit)
    case failEdit(FailEdit)

    private static let words = JSONType<[String]>.list(of: .text(maxBytes: TextLimit.keyword), limit: 1024)

    /// Imports an asset: `asset.create`.
    public struct CreateAsset: Sendable, Hashable, JSONTabled {
        /// The placeholder of the new asset; nil if it is not referred to.
        public var ref: String?
        /// The identifier to give to the asset, which the client generated; nil for one of the catalog (S-09).
        public var id: ObjectID?
        /// The files of the asset.
        public var resources: [NewResource]
        /// The properties to set after the file's metadata was applied.
        public var set: AssetPatch
        /// The keywords to remove afterwards: of those of the file, or of those that are set.
        public var removeKeywords: [String]
        /// The keywords to add after that.
        public var addKeywords: [String]
        /// The source of the asset.
        public var sourceType: SourceType
        /// The rule if the library already has the bytes.
        public var ifDuplicate: DuplicateRule
        /// The burst to which the asset belongs; nil for none.
        public var burst: NewBurst?
        /// An XMP file about the image. Its values take precedence over those in the image, except for the date.
        public var sidecar: NewResource?
        /// An edit that is applied at import; ignored, which the reply says, if the library already has the bytes.
        public var edit: NewEdit?

        public init(
            ref: String? = nil,
            resources: [NewResource],
            set: AssetPatch = AssetPatch(),
            addKeywords: [String] = [],
            removeKeywords: [String] = [],
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
            self.addKeywords = addKeywords
            self.removeKeywords = removeKeywords
            self.sourceType = sourceType
            self.ifDuplicate = ifDuplicate
        }

        public static let table = JSONTable(
            "asset.create",
            "Imports an asset.",
            unknown: .refused,
            blank: CreateAsset(resources: []),
            [
                .ref(\.ref),
                .newID(\.id, .asset),
                .required(
                    "resources",
                    \.resources,
                    .list(of: .object(NewResource.self), limit: 16),
                    "Its files: exactly one original."
                ),
                .defaulted("set", \.set, .object(AssetPatch.self), "Properties to set.", default: AssetPatch()),
                .defaulted(
                    "addKeywords",
                    \.addKeywords,
                    words,
                    "Keywords to add to those of the file, of set or of the existing asset.",
                    default: []
                ),
                .defaulted(
                    "removeKeywords",
                    \.removeKeywords,
                    words,
                    "Keywords to remove from those, before others are added.",
                    default: []
                ),
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
                    "If the library already has the bytes: useExisting returns that asset, taken out of the trash and "
                        + "with the properties to set; create makes a second one; createIfTrashed makes a second one "
                        + "only if the existing one is in the trash.",
                    default: .useExisting
                ),
                .optional("burst", \.burst, .object(NewBurst.self), "The burst to which it belongs."),
                .optional(
                    "sidecar",
                    \.sidecar,
                    .object(NewResource.self),
                    "An XMP file: rating, keywords, caption and location override those of the image; its date "
                        + "is used if the image has none, or if the sidecar was exported with this image. The file "
                        + "is read, not stored."
                ),
                .optional(
                    "edit",
                    \.edit,
                    .object(NewEdit.self),
                    "An edit to apply at import; ignored, which the reply says, if the library already has the bytes."
                ),
            ]
        )
    }

    /// Sets properties of an asset: `asset.update`.
    public struct UpdateAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectReference
        /// The properties to set.
        public var set: AssetPatch
        /// The keywords to add.
        public var addKeywords: [String]
        /// The keywords to remove.
        public var removeKeywords: [String]
        /// The revision that the asset must have; nil accepts any.
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
                    "Properties to set.",
                    default: AssetPatch(),
                    isWritten: true
                ),
                .defaulted("addKeywords", \.addKeywords, words, "Keywords to add.", default: []),
                .defaulted("removeKeywords", \.removeKeywords, words, "Keywords to remove.", default: []),
                .ifRevision(\.ifRevision),
            ]
        )
    }

    /// Deletes, trashes or restores objects, depending on the request.
    public struct ObjectIDs: Sendable, Hashable, JSONTabled {
        /// The objects, at most ``ChangeRecord/maxEntities``.
        public var ids: [ObjectID]

        public init(ids: [ObjectID]) { self.ids = ids }

        public static let table = JSONTable(
            "delete",
            "Deletes assets; or collections without their assets, folders with their contents; or moves assets "
                + "to the trash or restores them.",
            unknown: .refused,
            blank: ObjectIDs(ids: []),
            [.required("ids", \.ids, .list(of: .id(), limit: ChangeRecord.maxEntities), "The objects.")]
        )
    }

    /// Commits an edit: `asset.edit`, PhotoKit's `PHContentEditingOutput` (S-89, S-90).
    public struct EditAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectID
        /// The rendered image with orientation applied, or the rendered video.
        public var render: NewResource
        /// The rendered video of a Live Photo; nil to show its video as it was taken (T-48).
        public var pairedVideo: NewResource?
        /// The description of the edit.
        public var adjustmentData: AdjustmentData
        /// The content revision that the asset must have; nil accepts any.
        public var ifContentRevision: Revision?
        /// The token returned by `editing.begin`. It states the version on which the edit is based and replaces
        /// `ifContentRevision`.
        public var inputToken: EditInputToken?
        /// The published edit that this request carries out; it becomes `applied` in the same transaction. Used by
        /// services.
        public var publishedEdit: String?

        public init(
            id: ObjectID,
            render: NewResource,
            pairedVideo: NewResource? = nil,
            adjustmentData: AdjustmentData,
            ifContentRevision: Revision? = nil,
            inputToken: EditInputToken? = nil,
            publishedEdit: String? = nil
        ) {
            self.publishedEdit = publishedEdit
            self.id = id
            self.render = render
            self.pairedVideo = pairedVideo
            self.adjustmentData = adjustmentData
            self.ifContentRevision = ifContentRevision
            self.inputToken = inputToken
        }

        public static let table = JSONTable(
            "asset.edit",
            "Commits an edit: `PHContentEditingOutput` (S-89, S-90).",
            unknown: .refused,
            blank: EditAsset(
                id: .none,
                render: NewResource(source: .path("")),
                adjustmentData: AdjustmentData(formatIdentifier: "", formatVersion: "", attachment: 0)
            ),
            [
                .required("id", \.id, .id(.asset), "The asset."),
                .required("render", \.render, .object(NewResource.self), "The rendered image, upright, or video."),
                .optional(
                    "pairedVideo",
                    \.pairedVideo,
                    .object(NewResource.self),
                    "The rendered video of a Live Photo, upright. Default: its video as it was taken."
                ),
                .required("adjustmentData", \.adjustmentData, .object(AdjustmentData.self), "Description of the edit."),
                .ifContentRevision(\.ifContentRevision),
                .optional(
                    "inputToken",
                    \.inputToken,
                    .editInput,
                    "The token returned by editing.begin; conflict if the pixels have changed since."
                ),
                .publishedEdit(\.publishedEdit),
            ]
        )
    }

    /// Discards all edits of an asset: `asset.revert` (S-92).
    public struct RevertAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectID
        /// The content revision that the asset must have; nil accepts any.
        public var ifContentRevision: Revision?
        /// The original to present from now on (T-26); nil keeps the present choice.
        public var base: OriginalChoice?
        /// The published edit that this request carries out, as in ``EditAsset``. Used by services.
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
            "Discards all edits of an asset (S-92).",
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

    /// Creates an album: `collection.create`.
    public struct CreateCollection: Sendable, Hashable, JSONTabled {
        /// The placeholder of the new album; nil if it is not referred to.
        public var ref: String?
        /// The identifier to give to the album, which the client generated; nil for one of the catalog.
        public var id: ObjectID?
        public var title: String
        /// The first members.
        public var add: [ObjectReference]
        /// The folder to which it is appended; nil is the root.
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
            "Creates an album.",
            unknown: .refused,
            blank: CreateCollection(title: ""),
            [
                .ref(\.ref),
                .newID(\.id, .assetCollection),
                .required("title", \.title, .text(maxBytes: TextLimit.title), "Its name."),
                .defaulted(
                    "add",
                    \.add,
                    .list(of: .reference, limit: ChangeRecord.maxEntities),
                    "Its first members.",
                    default: []
                ),
                .optional("parent", \.parent, .reference, "The folder to which it is appended; absent: the root."),
            ]
        )
    }

    /// Renames an album or changes its members: `collection.update`.
    public struct UpdateCollection: Sendable, Hashable, JSONTabled {
        public var id: ObjectReference
        /// The new name; nil keeps the present one.
        public var title: String?
        /// Assets to append. Existing members keep their position.
        public var add: [ObjectReference]
        /// Assets to remove. Ids that are not members are ignored.
        public var remove: [ObjectID]
        /// The cover image.
        public var keyAsset: ObjectID??
        /// The operations on members, applied in order after `remove` and `add`.
        public var edits: [MemberEdit]
        /// The token at which the indexes in `edits` were read; nil if there are no indexes.
        public var snapshot: ChangeToken?
        /// The fetch to whose result the indexes in `edits` refer; nil is the album's fetch without options.
        public var snapshotFetch: FetchDescription?
        /// The revision that the album must have; nil accepts any.
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
            "Renames an album, removes members, adds members at its end, then applies edits.",
            unknown: .refused,
            blank: UpdateCollection(id: .placeholder("")),
            [
                .required("id", \.id, .reference, "The album."),
                .optional("title", \.title, .text(maxBytes: TextLimit.title), "Its new name."),
                .defaulted(
                    "add",
                    \.add,
                    .list(of: .reference, limit: ChangeRecord.maxEntities),
                    "Assets to append; existing members keep their position.",
                    default: []
                ),
                .defaulted(
                    "remove",
                    \.remove,
                    .list(of: .id(.asset), limit: ChangeRecord.maxEntities),
                    "Assets to remove; ids that are not members are ignored.",
                    default: []
                ),
                .patch("keyAsset", \.keyAsset, .id(.asset), "The cover, a member; null: the default."),
                .defaulted("edits", \.edits, .memberEdits, "Steps, in order.", default: []),
                .optional("snapshot", \.snapshot, .token, "The token at which the indexes in edits were read."),
                .optional(
                    "snapshotFetch",
                    \.snapshotFetch,
                    .object(FetchDescription.self),
                    "The fetch to which the indexes refer; absent: the album without options."
                ),
                .ifRevision(\.ifRevision),
            ]
        )
    }
}
