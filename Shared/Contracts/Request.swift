public import JSONValue

/// A request of a service: a method with its parameters, declared once as a table, and its result type.
public protocol Request: JSONTabled {
    associatedtype Result: JSONTabled
    /// The method name on the wire, for example `fetch.assets`.
    static var method: String { get }
    /// Decodes the parameters.
    ///
    /// - Throws: `invalid_params`, with the name of the parameter
    init(params: JSON) throws(RPCError)
}

extension Request {
    /// Returns the table of a request. Unknown members are refused, so that a misspelled option is not silently
    /// replaced by its default.
    static func parameters(_ summary: String, blank: Self, _ fields: [JSONField<Self>] = []) -> JSONTable<Self> {
        JSONTable(method, summary, unknown: .refused, blank: blank, fields)
    }

    public init(params: JSON) throws(RPCError) { self = try Self.read(params) }

    /// Decodes the parameters with the table.
    static func read(_ params: JSON) throws(RPCError) -> Self {
        do throws(JSONProblem) {
            return try table.decode(params)
        } catch {
            throw ErrorCode.invalidParams.error(
                "\(method): \(error.description)",
                ["parameter": .string(error.path.joined(separator: "."))]
            )
        }
    }
}

/// Parameters that every request accepts in addition to its own.
public enum CommonParameters {
    public static let schema: JSON = [
        "deadlineMs": [
            "type": "integer", "minimum": 1, "description": "Milliseconds until the request's deadline; default 30000.",
        ],
        "credit": [
            "type": "integer", "minimum": 0,
            "description": "Bytes of notifications that the service may send ahead; rpc.credit grants more.",
        ],
    ]
}

/// Returns the OpenRPC document of a service, generated from its method descriptions.
public func openRPCDocument(service: String, version: String, methods: [MethodDescription]) -> JSON {
    let described = methods.sorted { $0.name < $1.name }.map { method -> JSON in
        let required = Set(method.params["required"]?.arrayValue?.compactMap(\.stringValue) ?? [])
        let params = (method.params["properties"]?.objectValue ?? [:]).members.map { name, schema -> JSON in
            ["name": .string(name), "required": .bool(required.contains(name)), "schema": schema]
        }
        var description: JSONObject = [
            "name": .string(method.name), "summary": .string(method.summary), "paramStructure": "by-name",
            "params": .array(params), "result": ["name": "result", "schema": method.result],
        ]
        if !method.attachments.isEmpty { description["x-attachments"] = .string(method.attachments) }
        if let endpoint = method.pushedTo {
            // In OpenRPC a method without a result is a notification.
            description["result"] = nil
            description["x-pushed-to"] = .string(endpoint)
        }
        return .object(description)
    }
    let errors = ErrorCode.allCases.map { refusal -> JSON in
        ["code": JSON(refusal.code), "message": .string(refusal.rawValue), "data": .string(refusal.summary)]
    }
    return [
        "openrpc": "1.3.2",
        "info": ["title": .string(service), "version": .string(version), "x-protocol": 1],
        "methods": .array(described),
        "components": ["errors": .array(errors), "x-commonParameters": CommonParameters.schema],
    ]
}

/// A result without members: the request succeeded.
public struct EmptyResult: JSONTabled {
    public init() {}
    public static let table = JSONTable("Done", "An empty object.", unknown: .ignored, blank: EmptyResult(), [])
}

/// An object with arbitrary members that are documented elsewhere.
public struct FreeForm: JSONTabled {
    public var members: JSONObject

    public init(_ members: JSONObject = [:]) { self.members = members }

    public init(json: JSON) throws(JSONProblem) {
        guard let members = json.objectValue else { throw JSONProblem("expected an object") }
        self.members = members
    }

    public var json: JSON { .object(members) }

    public static let table = JSONTable("Object", "Arbitrary members.", unknown: .ignored, blank: FreeForm(), [])
}
