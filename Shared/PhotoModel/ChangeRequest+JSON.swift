public import JSONValue

extension JSONType where Value == ChangeRequest {
    /// The type of an object whose `type` is the name of the request.
    public static var changeRequest: JSONType {
        JSONType(
            schema: ["oneOf": .array(ChangeRequest.kinds.map { $0.schema() })],
            decode: { (json: JSON) throws(JSONProblem) in
                guard case .object(var object) = json else { throw JSONProblem("expected an object") }
                if let update = ChangeRequest.UpdateAsset(flagsAndRating: object) { return .updateAsset(update) }
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
                schema["required"] = .array(["type"] + (schema["required"]?.arrayValue ?? []))
                schema["title"] = .string(name)
                return .object(schema)
            }
            self.decode = { (json: JSON) throws(JSONProblem) in make(try Body.table.decode(json)) }
        }
    }

    static let kinds: [Kind] = [
        Kind("asset.create", CreateAsset.self) { .createAsset($0) },
        Kind("asset.update", UpdateAsset.self) { .updateAsset($0) },
        Kind("asset.delete", ObjectIDs.self) { .deleteAssets($0) },
        Kind("asset.edit", EditAsset.self) { .editAsset($0) },
        Kind("asset.revert", RevertAsset.self) { .revertAsset($0) },
        Kind("collection.create", CreateCollection.self) { .createCollection($0) },
        Kind("collection.update", UpdateCollection.self) { .updateCollection($0) },
        Kind("collection.delete", ObjectIDs.self) { .deleteCollections($0) },
        Kind("asset.trash", ObjectIDs.self) { .trashAssets($0) },
        Kind("asset.restore", ObjectIDs.self) { .restoreAssets($0) },
        Kind("list.create", CreateList.self) { .createList($0) },
        Kind("list.update", UpdateList.self) { .updateList($0) },
        Kind("list.delete", ObjectIDs.self) { .deleteLists($0) },
        Kind("edit.accept", AcceptEdit.self) { .acceptEdit($0) },
        Kind("edit.fail", FailEdit.self) { .failEdit($0) },
    ]

    /// The `type` of the request on the wire.
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
        case .trashAssets: "asset.trash"
        case .restoreAssets: "asset.restore"
        case .createList: "list.create"
        case .updateList: "list.update"
        case .deleteLists: "list.delete"
        case .acceptEdit: "edit.accept"
        case .failEdit: "edit.fail"
        }
    }

    /// The request as a JSON object with its `type`.
    public var json: JSON {
        if case .updateAsset(let update) = self, let json = update.flagsAndRatingJSON { return json }
        let body: JSONObject =
            switch self {
            case .createAsset(let body): CreateAsset.table.encode(body)
            case .updateAsset(let body): UpdateAsset.table.encode(body)
            case .deleteAssets(let body), .deleteCollections(let body), .trashAssets(let body),
                .restoreAssets(let body), .deleteLists(let body):
                ObjectIDs.table.encode(body)
            case .createList(let body): CreateList.table.encode(body)
            case .updateList(let body): UpdateList.table.encode(body)
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

extension AssetPatch {
    /// True if the patch sets only flags and the rating, as most changes do.
    fileprivate var isFlagsAndRating: Bool {
        self == AssetPatch(isFavorite: isFavorite, isHidden: isHidden, rating: rating)
    }
}

// MARK: - Fast paths

// Most changes set only flags and the rating of an asset. They are read and written without looking up each member that
// the request could have, in the three functions below.

extension ChangeRequest.UpdateAsset {
    /// The JSON of a request that sets only flags and the rating; nil for others.
    fileprivate var flagsAndRatingJSON: JSON? {
        guard case .id(let id) = id, ifRevision == nil, addKeywords.isEmpty, removeKeywords.isEmpty,
            set.isFlagsAndRating
        else { return nil }
        var patch: [(name: String, value: JSON)] = []
        if let isFavorite = set.isFavorite { patch.append(("isFavorite", .bool(isFavorite))) }
        if let isHidden = set.isHidden { patch.append(("isHidden", .bool(isHidden))) }
        if let rating = set.rating { patch.append(("rating", JSON(rating))) }
        return .object(
            JSONObject(distinct: [
                ("type", "asset.update"), ("id", .string(id.text)), ("set", .object(JSONObject(distinct: patch))),
            ])
        )
    }

    /// Writes the canonical JSON of a request that sets only flags and the rating: members are sorted by name.
    ///
    /// - Returns: false for other requests, of which nothing is written
    public func writeFlagsAndRating(to writer: inout JSONWriter) -> Bool {
        guard case .id(let id) = id, addKeywords.isEmpty, removeKeywords.isEmpty, set.isFlagsAndRating else {
            return false
        }
        writer.append("{\"id\":")
        writer.write(id)
        if let ifRevision {
            writer.append(",\"ifRevision\":")
            writer.write(ifRevision.description)
        }
        writer.append(",\"set\":")
        writer.writeObject { writer in
            if let isFavorite = set.isFavorite {
                writer.append(",\"isFavorite\":")
                writer.write(isFavorite)
            }
            if let isHidden = set.isHidden {
                writer.append(",\"isHidden\":")
                writer.write(isHidden)
            }
            if let rating = set.rating {
                writer.append(",\"rating\":")
                writer.write(rating)
            }
        }
        writer.append(",\"type\":\"asset.update\"}")
        return true
    }

    /// Reads an `asset.update` that sets only flags and the rating; nil if it has other members or an invalid value,
    /// for which the table then throws an error.
    fileprivate init?(flagsAndRating object: JSONObject) {
        var (id, patch): (ObjectID?, AssetPatch) = (nil, AssetPatch())
        var isUpdate = false
        for (name, value) in object.members {
            switch (name, value) {
            case ("type", .string("asset.update")): isUpdate = true
            case ("id", .string(let text)): id = ObjectID(text)
            case ("set", .object(let set)):
                for (name, value) in set.members {
                    switch (name, value) {
                    case ("isFavorite", .bool(let flag)): patch.isFavorite = flag
                    case ("isHidden", .bool(let flag)): patch.isHidden = flag
                    case ("rating", .int(let stars)) where (0...5).contains(stars): patch.rating = Int(stars)
                    default: return nil
                    }
                }
            default: return nil
            }
        }
        guard isUpdate, let id else { return nil }
        self.init(id: .id(id), set: patch)
    }
}
