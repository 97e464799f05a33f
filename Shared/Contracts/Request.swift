public import JSONValue
public import Messaging

/// A request of a service: a method with its parameters, declared once as a table, and its result type.
public protocol Request: JSONTabled {
    /// The type of the result.
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
    /// The members.
    public var members: JSONObject

    public init(_ members: JSONObject = [:]) { self.members = members }

    public init(json: JSON) throws(JSONProblem) {
        guard let members = json.objectValue else { throw JSONProblem("expected an object") }
        self.members = members
    }

    public var json: JSON { .object(members) }

    public static let table = JSONTable("Object", "Arbitrary members.", unknown: .ignored, blank: FreeForm(), [])
}

// MARK: - The requests of a service

/// All requests of a service, as the cases of one enumeration.
public protocol ServiceRequest: Sendable {
    /// The methods of the service, each with the case that holds its parameters.
    static var table: MethodTable<Self> { get }
}

extension ServiceRequest {
    /// The descriptions of the methods, for `rpc.discover`.
    public static var methods: [MethodDescription] { table.descriptions }

    /// Creates a request from the method name and parameters of a JSON-RPC message.
    ///
    /// - Throws: `method_not_found`, or `invalid_params` with the name of the parameter
    public init(method: String, params: JSON) throws(RPCError) { self = try Self.table.read(method, params) }

    /// Returns the limits for requests of a method: JSON size and attachments; `.default` if the method is unknown.
    public static func limits(of method: String) -> MethodLimits { table.limits[method] ?? .default }

    /// Returns the access that a method needs; nil if the service has no such method.
    public static func access(of method: String) -> MethodAccess? { table.access[method] }
}

/// The methods of a service, each with the case of ``ServiceRequest`` that holds its parameters.
public struct MethodTable<Requests: Sendable>: Sendable {
    let descriptions: [MethodDescription]
    /// Limits of the methods whose limits differ from `.default`, by method name.
    let limits: [String: MethodLimits]
    /// The access that each method needs.
    let access: [String: MethodAccess]
    private let readers: [String: Reader]

    /// Creates a request from its parameters.
    typealias Reader = @Sendable (JSON) throws(RPCError) -> Requests

    /// One method.
    struct Row: Sendable {
        let description: MethodDescription
        let limits: MethodLimits
        let read: Reader

        /// Returns the row of a method.
        ///
        /// - Parameters:
        ///   - make: the case of the method's request
        ///   - access: the access that an identity needs
        ///   - attachments: description of the attachments, for the documentation; empty if there are none
        ///   - notifications: the notifications that may precede the response
        ///   - limits: whether a request may have attachments, and its maximum JSON size (1 MiB by default)
        static func method<R: Request>(
            _ make: @escaping @Sendable (R) -> Requests,
            access: MethodAccess,
            attachments: String = "",
            notifications: @escaping @autoclosure @Sendable () -> [NotificationDescription] = [],
            limits: MethodLimits = .default
        ) -> Row {
            Row(
                description: MethodDescription(
                    R.self,
                    access: access,
                    attachments: attachments,
                    notifications: notifications()
                ),
                limits: limits
            ) { params throws(RPCError) in
                make(try R(params: params))
            }
        }
    }

    init(_ rows: [Row]) {
        descriptions = rows.map(\.description)
        let special = rows.filter { $0.limits != .default }
        limits = Dictionary(special.map { ($0.description.name, $0.limits) }) { first, _ in first }
        access = Dictionary(rows.map { ($0.description.name, $0.description.access) }) { first, _ in first }
        readers = Dictionary(rows.map { ($0.description.name, $0.read) }) { first, _ in first }
    }

    func read(_ method: String, _ params: JSON) throws(RPCError) -> Requests {
        guard let read = readers[method] else {
            throw MethodOwners.methodNotFound(method, methods: descriptions.map(\.name))
        }
        return try read(params)
    }
}

extension MethodLimits {
    /// 4 MiB of JSON: for fetches, whose predicates may list values, and requests that name thousands of assets.
    static let large = MethodLimits(maxJSONBytes: 4 << 20)
    /// 16 MiB of JSON, the maximum of a message, and attachments: for transactions.
    static let transaction = MethodLimits(
        maxJSONBytes: 16 << 20,
        takesAttachments: true,
        advice:
            "send the bytes of larger files with upload.begin, upload.append and upload.finish and name the upload in "
            + "the request, name files on the catalog's machine by path, and split a long list of requests"
    )
    /// The default JSON size, for requests that may wait for an event.
    static let waiting = MethodLimits(waitsForEvents: true)
    /// The default JSON size, and attachments.
    static let withAttachments = MethodLimits(
        takesAttachments: true,
        advice:
            "append the bytes in several requests, each with one attachment of at most "
            + "\(BeginUpload.chunkBytes >> 20) MiB and the offset that it begins at"
    )
}

// MARK: - The description of a method

/// The description of a method in the documentation (OpenRPC 1.3).
public struct MethodDescription: Sendable {
    /// The method name on the wire.
    public let name: String
    /// The description in words.
    public var summary: String { describe().summary }
    /// The JSON Schema of the parameters.
    public var params: JSON { describe().params }
    /// The JSON Schema of the result.
    public var result: JSON { describe().result }
    /// The access that an identity needs.
    public let access: MethodAccess
    /// Description of the attachments; empty if there are none.
    public let attachments: String
    /// The endpoint that a notification is pushed to; it has no response. Nil for a request.
    public let pushedTo: String?
    /// The notifications that it may send before its response.
    public var notifications: [NotificationDescription] { describeNotifications() }

    /// Creates the texts and schemas from the tables. It takes longer than the rest of a service's start, and only
    /// `rpc.discover` needs it.
    private let describe: @Sendable () -> (summary: String, params: JSON, result: JSON)
    private let describeNotifications: @Sendable () -> [NotificationDescription]

    /// Describes the method of a request.
    public init<R: Request>(
        _: R.Type,
        access: MethodAccess,
        attachments: String = "",
        notifications: @escaping @autoclosure @Sendable () -> [NotificationDescription] = []
    ) {
        self.name = R.method
        self.access = access
        self.describe = { (R.table.summary, R.table.schema, R.Result.table.schema) }
        self.attachments = attachments
        self.describeNotifications = notifications
        self.pushedTo = nil
    }

    /// Describes a notification that is pushed to a separate endpoint.
    public init<N: JSONTabled>(notification method: String, _: N.Type, to endpoint: String, access: MethodAccess) {
        self.name = method
        self.access = access
        self.describe = { (N.table.summary, N.table.schema, [:]) }
        self.attachments = ""
        self.describeNotifications = { [] }
        self.pushedTo = endpoint
    }
}
