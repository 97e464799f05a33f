public import JSONValue

/// A reference to an entity, which may be created by an earlier request of the same transaction (S-09, S-79).
public enum ObjectReference: Sendable, Hashable {
    case id(ObjectID)
    /// The `ref` of a create request: PhotoKit's placeholder object.
    case placeholder(String)

    /// The maximum length of a placeholder in bytes.
    public static let maxPlaceholderBytes = 64
}

extension JSONType where Value == ObjectReference {
    /// The type of a reference: `"a01h…"` or `{"ref": "p1"}`.
    public static var reference: JSONType {
        JSONType(
            schema: [
                "anyOf": [
                    ["type": "string"],
                    ["type": "object", "properties": ["ref": ["type": "string"]], "required": ["ref"]],
                ]
            ],
            decode: { (json: JSON) throws(JSONProblem) in
                if let text = json.stringValue, let id = ObjectID(text) { return .id(id) }
                if case .object(let object) = json, object.count == 1, let ref = object["ref"]?.stringValue,
                    !ref.isEmpty,
                    ref.utf8.count <= ObjectReference.maxPlaceholderBytes
                {
                    return .placeholder(ref)
                }
                throw JSONProblem("expected an identifier or {\"ref\": …} of a create request in this transaction")
            },
            encode: { reference in
                switch reference {
                case .id(let id): .string(id.text)
                case .placeholder(let ref): ["ref": .string(ref)]
                }
            }
        )
    }
}

/// The source of the bytes of a resource.
public enum ResourceSource: Sendable, Hashable {
    /// The attachment of the message with this index, from 0.
    case attachment(Int)
    /// The id of a finished upload.
    case upload(String)
    /// A file on the catalog's machine below a configured folder. Accepted over `ipc://` only.
    case path(String)
}

/// The rule for a new asset whose bytes are already in the library (P-23).
public enum DuplicateRule: String, Sendable, CaseIterable {
    /// The request returns the existing asset, with the properties to set; one in the trash is restored.
    case useExisting
    /// A second asset is created.
    case create
    /// As `useExisting`, except that a second asset is created beside one in the trash, which stays there.
    case createIfTrashed
}
