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
    case acceptEdit(AcceptEdit)
    case failEdit(FailEdit)

    public struct CreateAsset: Sendable, Hashable, JSONTabled {
        public var ref: String?
        public var resources: [NewResource]
        public var set: AssetPatch
        public var sourceType: SourceType
        public var ifDuplicate: DuplicateRule
        /// An XMP file about the picture: what it says goes before what the picture says, but for the date.
        public var sidecar: NewResource?

        public init(
            ref: String? = nil,
            resources: [NewResource],
            set: AssetPatch = AssetPatch(),
            sourceType: SourceType = .typeUserLibrary,
            ifDuplicate: DuplicateRule = .useExisting,
            sidecar: NewResource? = nil
        ) {
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
                .optional("ref", \.ref, .text(maxBytes: ObjectReference.maxPlaceholderBytes), "Placeholder for it."),
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
                .optional(
                    "sidecar",
                    \.sidecar,
                    .object(NewResource.self),
                    "An XMP file about it: rating, keywords, caption and place go before the picture's own; its date "
                        + "counts where the picture has none. It is read, not kept."
                ),
            ]
        )
    }

    public struct UpdateAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectReference
        public var set: AssetPatch
        public var ifRevision: Revision?

        public init(id: ObjectReference, set: AssetPatch, ifRevision: Revision? = nil) {
            self.id = id
            self.set = set
            self.ifRevision = ifRevision
        }

        public static let table = JSONTable(
            "asset.update",
            "Sets properties of an asset.",
            unknown: .refused,
            blank: UpdateAsset(id: .placeholder(""), set: AssetPatch()),
            [
                .required("id", \.id, .reference, "The asset."),
                .required("set", \.set, .object(AssetPatch.self), "Properties to be set."),
                .optional("ifRevision", \.ifRevision, .revision, "Refused as conflict when it has another revision."),
            ]
        )
    }

    public struct DeleteObjects: Sendable, Hashable, JSONTabled {
        public var ids: [ObjectID]

        public init(ids: [ObjectID]) { self.ids = ids }

        public static let table = JSONTable(
            "delete",
            "Deletes assets, or collections without their assets.",
            unknown: .refused,
            blank: DeleteObjects(ids: []),
            [.required("ids", \.ids, .list(of: .id(), limit: ChangeRecord.maxEntities), "What is deleted.")]
        )
    }

    public struct EditAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectID
        /// The rendered picture, upright.
        public var render: NewResource
        public var adjustmentData: AdjustmentData
        public var ifContentRevision: Revision?
        /// The published edit that this one carries out; it is `applied` in the same transaction. For services.
        public var publishedEdit: String?

        public init(
            id: ObjectID,
            render: NewResource,
            adjustmentData: AdjustmentData,
            ifContentRevision: Revision? = nil,
            publishedEdit: String? = nil
        ) {
            self.publishedEdit = publishedEdit
            self.id = id
            self.render = render
            self.adjustmentData = adjustmentData
            self.ifContentRevision = ifContentRevision
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
                .required("render", \.render, .object(NewResource.self), "The rendered picture, upright."),
                .required("adjustmentData", \.adjustmentData, .object(AdjustmentData.self), "How it was made."),
                .optional(
                    "ifContentRevision",
                    \.ifContentRevision,
                    .revision,
                    "Refused as conflict when its pixels have another revision."
                ),
                .optional(
                    "edit",
                    \.publishedEdit,
                    .editName,
                    "For services: the accepted edit that is applied with it; refused as conflict when it is finished."
                ),
            ]
        )
    }

    public struct RevertAsset: Sendable, Hashable, JSONTabled {
        public var id: ObjectID
        public var ifContentRevision: Revision?

        public init(id: ObjectID, ifContentRevision: Revision? = nil) {
            self.id = id
            self.ifContentRevision = ifContentRevision
        }

        public static let table = JSONTable(
            "asset.revert",
            "Discards all edits of an asset (spec S-92).",
            unknown: .refused,
            blank: RevertAsset(id: .none),
            [
                .required("id", \.id, .id(.asset), "The asset."),
                .optional(
                    "ifContentRevision",
                    \.ifContentRevision,
                    .revision,
                    "Refused as conflict when its pixels have another revision."
                ),
            ]
        )
    }

    public struct CreateCollection: Sendable, Hashable, JSONTabled {
        public var ref: String?
        public var title: String
        public var add: [ObjectReference]

        public init(ref: String? = nil, title: String, add: [ObjectReference] = []) {
            self.ref = ref
            self.title = title
            self.add = add
        }

        public static let table = JSONTable(
            "collection.create",
            "Makes an album.",
            unknown: .refused,
            blank: CreateCollection(title: ""),
            [
                .optional("ref", \.ref, .text(maxBytes: ObjectReference.maxPlaceholderBytes), "Placeholder for it."),
                .required("title", \.title, .text(maxBytes: 1024), "Its name."),
                .defaulted(
                    "add",
                    \.add,
                    .list(of: .reference, limit: ChangeRecord.maxEntities),
                    "Its first members.",
                    default: []
                ),
            ]
        )
    }

    public struct UpdateCollection: Sendable, Hashable, JSONTabled {
        public var id: ObjectReference
        public var title: String?
        public var add: [ObjectReference]
        public var remove: [ObjectID]
        public var ifRevision: Revision?

        public init(
            id: ObjectReference,
            title: String? = nil,
            add: [ObjectReference] = [],
            remove: [ObjectID] = [],
            ifRevision: Revision? = nil
        ) {
            self.id = id
            self.title = title
            self.add = add
            self.remove = remove
            self.ifRevision = ifRevision
        }

        public static let table = JSONTable(
            "collection.update",
            "Renames an album, removes members, then adds members at its end.",
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
                .optional("ifRevision", \.ifRevision, .revision, "Refused as conflict when it has another revision."),
            ]
        )
    }
}

extension JSONType where Value == ChangeRequest {
    /// An object whose `type` names the request.
    public static var changeRequest: JSONType {
        JSONType(
            schema: ["oneOf": .array(ChangeRequest.kinds.map { $0.schema() })],
            decode: { (json: JSON) throws(JSONProblem) in
                guard case .object(var object) = json else { throw JSONProblem("expected an object") }
                guard let name = object["type"]?.stringValue,
                    let kind = ChangeRequest.kinds.first(where: { $0.name == name })
                else {
                    let names = ChangeRequest.kinds.map(\.name).joined(separator: ", ")
                    throw JSONProblem("expected one of \(names)", path: ["type"])
                }
                object["type"] = nil
                return try kind.decode(.object(object))
            },
            encode: { $0.json }
        )
    }
}

extension ChangeRequest {
    struct Kind: Sendable {
        let name: String
        let schema: @Sendable () -> JSON
        let decode: @Sendable (JSON) throws(JSONProblem) -> ChangeRequest

        init<Body: JSONTabled>(_ name: String, _: Body.Type, _ make: @escaping @Sendable (Body) -> ChangeRequest) {
            self.name = name
            self.schema = {
                var schema = Body.table.schema.objectValue ?? [:]
                var properties: JSONObject = ["type": ["const": .string(name)]]
                for (name, value) in schema["properties"]?.objectValue?.members ?? [] { properties[name] = value }
                schema["properties"] = .object(properties)
                schema["title"] = .string(name)
                return .object(schema)
            }
            self.decode = { (json: JSON) throws(JSONProblem) in make(try Body.table.decode(json)) }
        }
    }

    static let kinds: [Kind] = [
        Kind("asset.create", CreateAsset.self) { .createAsset($0) },
        Kind("asset.update", UpdateAsset.self) { .updateAsset($0) },
        Kind("asset.delete", DeleteObjects.self) { .deleteAssets($0) },
        Kind("asset.edit", EditAsset.self) { .editAsset($0) },
        Kind("asset.revert", RevertAsset.self) { .revertAsset($0) },
        Kind("collection.create", CreateCollection.self) { .createCollection($0) },
        Kind("collection.update", UpdateCollection.self) { .updateCollection($0) },
        Kind("collection.delete", DeleteObjects.self) { .deleteCollections($0) },
        Kind("edit.accept", AcceptEdit.self) { .acceptEdit($0) },
        Kind("edit.fail", FailEdit.self) { .failEdit($0) },
    ]

    public var name: String {
        switch self {
        case .createAsset: "asset.create"
        case .updateAsset: "asset.update"
        case .deleteAssets: "asset.delete"
        case .editAsset: "asset.edit"
        case .revertAsset: "asset.revert"
        case .createCollection: "collection.create"
        case .updateCollection: "collection.update"
        case .deleteCollections: "collection.delete"
        case .acceptEdit: "edit.accept"
        case .failEdit: "edit.fail"
        }
    }

    public var json: JSON {
        let body: JSONObject =
            switch self {
            case .createAsset(let body): CreateAsset.table.encode(body)
            case .updateAsset(let body): UpdateAsset.table.encode(body)
            case .deleteAssets(let body), .deleteCollections(let body): DeleteObjects.table.encode(body)
            case .editAsset(let body): EditAsset.table.encode(body)
            case .revertAsset(let body): RevertAsset.table.encode(body)
            case .createCollection(let body): CreateCollection.table.encode(body)
            case .updateCollection(let body): UpdateCollection.table.encode(body)
            case .acceptEdit(let body): AcceptEdit.table.encode(body)
            case .failEdit(let body): FailEdit.table.encode(body)
            }
        var object: JSONObject = ["type": .string(name)]
        for (name, value) in body.members { object[name] = value }
        return .object(object)
    }
}
