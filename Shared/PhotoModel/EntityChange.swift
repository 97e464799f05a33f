public import JSONValue

/// One entity before and after a transaction: nil before is an insertion, nil after is a deletion.
public struct EntityChange<Entity: JSONTabled & Hashable>: Sendable, Hashable {
    /// The entity before the transaction; nil if it was created.
    public var before: Entity?
    /// The entity after the transaction; nil if it was deleted.
    public var after: Entity?

    public init(before: Entity?, after: Entity?) {
        self.before = before
        self.after = after
    }

    /// The JSON Schema of a change.
    public static var schema: JSON {
        let state: JSON = ["anyOf": [Entity.table.schema, ["type": "null"]]]
        return ["type": "object", "properties": ["before": state, "after": state], "required": ["before", "after"]]
    }

    static var type: JSONType<EntityChange> {
        JSONType(
            schema: schema,
            decode: { (json: JSON) throws(JSONProblem) in
                guard case .object(let object) = json else { throw JSONProblem("expected an object") }
                var change = EntityChange(before: nil, after: nil)
                if let before = object["before"], !before.isNull { change.before = try Entity(json: before) }
                if let after = object["after"], !after.isNull { change.after = try Entity(json: after) }
                guard change.before != nil || change.after != nil else { throw JSONProblem("neither before nor after") }
                return change
            },
            encode: { ["before": $0.before?.json ?? .null, "after": $0.after?.json ?? .null] }
        )
    }
}

extension EntityChange {
    /// True if the entity was deleted from the library: PhotoKit's `objectWasDeleted` (S-66). Removal from a collection
    /// is not a deletion.
    public var objectWasDeleted: Bool { after == nil }
}

// An asset has many members, and a change that is bound to a name, or whose asset is, is copied with all of them. Code on
// the path of every change asks an element of a list for the members that it needs: `changes[index].after?.isFavorite`.
extension EntityChange where Entity == Asset {
    public var id: ObjectID { after?.id ?? before?.id ?? .none }
    /// True if the asset was created.
    public var isInsertion: Bool { before?.id == nil }
    /// True if the pixels changed: PhotoKit's `assetContentChanged` (S-66).
    public var isContentChanged: Bool {
        guard let before, let after else { return false }
        return before.contentRevision != after.contentRevision
    }
}

extension EntityChange where Entity == AssetCollection {
    public var id: ObjectID { after?.id ?? before?.id ?? .none }
}

extension EntityChange where Entity == CollectionList {
    public var id: ObjectID { after?.id ?? before?.id ?? .root }
}
