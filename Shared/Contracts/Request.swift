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
