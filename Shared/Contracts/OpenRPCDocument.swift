public import JSONValue
import PhotoModel

/// Parameters that every request accepts in addition to its own.
public enum CommonParameters {
    /// The JSON Schema of each parameter, by name.
    public static let schema: JSON = [
        "deadlineMs": [
            "type": "integer", "minimum": 1, "maximum": 600_000,
            "description": "Milliseconds until the request's deadline; default 30000.",
        ],
        "credit": [
            "type": "integer", "minimum": 0,
            "description": "Bytes of notifications that the service may send ahead; rpc.credit grants more.",
        ],
    ]
}

/// Returns the OpenRPC document of a service, generated from its method descriptions.
public func openRPCDocument(service: String, version: String, methods: [MethodDescription]) -> JSON {
    let described = (methods + TransportRequests.methods).sorted { $0.name < $1.name }.map(\.document)
    let errors = ErrorCode.allCases.map { error -> JSON in
        ["code": JSON(error.code), "message": .string(error.rawValue), "data": .string(error.summary)]
    }
    var schemas = JSONObject()
    for (name, schema) in Predicate.schemas + FeedMessageSchemas.schemas { schemas[name] = schema }
    return [
        "openrpc": "1.3.2",
        "info": ["title": .string(service), "version": .string(version), "x-protocol": 1],
        "methods": .array(described),
        "components": [
            "schemas": .object(schemas), "errors": .array(errors), "x-commonParameters": CommonParameters.schema,
        ],
        "x-topics": FeedMessageSchemas.topics,
    ]
}

extension MethodDescription {
    /// The method object of the document.
    fileprivate var document: JSON {
        let required = Set(params["required"]?.arrayValue?.compactMap(\.stringValue) ?? [])
        let members = (params["properties"]?.objectValue ?? [:]).members.map { name, schema -> JSON in
            ["name": .string(name), "required": .bool(required.contains(name)), "schema": schema]
        }
        var description: JSONObject = [
            "name": .string(name), "summary": .string(summary), "paramStructure": "by-name",
            "params": .array(members), "result": ["name": "result", "schema": result],
        ]
        description["x-access"] = .string(access.rawValue)
        if !attachments.isEmpty { description["x-attachments"] = .string(attachments) }
        if !notifications.isEmpty { description["x-notifications"] = .array(notifications.map(\.document)) }
        if let endpoint = pushedTo {
            // In OpenRPC a method without a result is a notification.
            description["result"] = nil
            description["x-pushed-to"] = .string(endpoint)
        }
        return .object(description)
    }
}
