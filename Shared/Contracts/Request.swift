public import JSONValue
public import Messaging

/// A request of the house: its parameters, declared once as a table, and what answers it.
public protocol Request: JSONTabled {
    associatedtype Result: JSONTabled
    /// The name on the wire, for example `fetch.assets`.
    static var method: String { get }
    /// Reads the parameters; a fault is answered `invalid_params`, naming the parameter.
    init(params: JSON) throws(RPCError)
}

/// A method for the documents (OpenRPC 1.3).
public struct MethodDescription: Sendable {
    public let name: String
    public let summary: String
    public let params: JSON
    public let result: JSON
    /// What travels as attachments, in words; empty for nothing.
    public let attachments: String
    /// The other endpoint that it is pushed to, without an answer; nil for a request.
    public let pushedTo: String?

    public init<R: Request>(_: R.Type, attachments: String = "") {
        self.name = R.method
        self.summary = R.table.summary
        self.params = R.table.schema
        self.result = R.Result.table.schema
        self.attachments = attachments
        self.pushedTo = nil
    }

    /// A notification that is pushed to an endpoint of its own.
    public init<N: JSONTabled>(notification method: String, _: N.Type, to endpoint: String) {
        self.name = method
        self.summary = N.table.summary
        self.params = N.table.schema
        self.result = [:]
        self.attachments = ""
        self.pushedTo = endpoint
    }
}

extension Request {
    /// The table of a request: what it does not name is refused, because a misspelt option must not pass for a default.
    static func parameters(_ summary: String, blank: Self, _ fields: [JSONField<Self>] = []) -> JSONTable<Self> {
        JSONTable(method, summary, unknown: .refused, blank: blank, fields)
    }

    public init(params: JSON) throws(RPCError) { self = try Self.read(params) }

    /// Reads the parameters by the table.
    static func read(_ params: JSON) throws(RPCError) -> Self {
        do throws(JSONProblem) {
            return try table.decode(params)
        } catch {
            throw Refusal.invalidParams.error(
                "\(method): \(error.description)",
                ["parameter": .string(error.path.joined(separator: "."))]
            )
        }
    }
}

/// What every parameter object may also carry (DESIGN 3.1).
public enum CommonParameters {
    public static let schema: JSON = [
        "deadlineMs": [
            "type": "integer", "minimum": 1, "description": "Milliseconds until the answer is due; 30000 by default.",
        ],
        "credit": [
            "type": "integer", "minimum": 0,
            "description": "Bytes of notifications that may be under way; more is granted by rpc.credit.",
        ],
    ]
}

/// The OpenRPC document of a service, made from its request tables.
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
            // OpenRPC's word for a method without an answer is to leave the result out.
            description["result"] = nil
            description["x-pushed-to"] = .string(endpoint)
        }
        return .object(description)
    }
    let errors = Refusal.allCases.map { refusal -> JSON in
        ["code": JSON(refusal.code), "message": .string(refusal.rawValue), "data": .string(refusal.summary)]
    }
    return [
        "openrpc": "1.3.2",
        "info": ["title": .string(service), "version": .string(version), "x-protocol": 1],
        "methods": .array(described),
        "components": ["errors": .array(errors), "x-commonParameters": CommonParameters.schema],
    ]
}

/// A result that says nothing but that it was done.
public struct Done: JSONTabled {
    public init() {}
    public static let table = JSONTable("Done", "Nothing to say.", unknown: .ignored, blank: Done(), [])
}

/// A result or parameter that is described elsewhere.
public struct FreeForm: JSONTabled {
    public var members: JSONObject

    public init(_ members: JSONObject = [:]) { self.members = members }

    public init(json: JSON) throws(JSONProblem) {
        guard let members = json.objectValue else { throw JSONProblem("expected an object") }
        self.members = members
    }

    public var json: JSON { .object(members) }

    public static let table = JSONTable("Object", "Any members.", unknown: .ignored, blank: FreeForm(), [])
}
