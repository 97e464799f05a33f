public import JSONValue
public import Messaging

/// Every request of a service, as the cases of one enumeration.
public protocol ServiceRequest: Sendable {
    /// The methods that make them.
    static var table: MethodTable<Self> { get }
}

extension ServiceRequest {
    /// What the service takes, for its documents.
    public static var methods: [MethodDescription] { table.descriptions }

    /// Reads a request.
    ///
    /// - Throws: `method_not_found`, or `invalid_params`
    public init(method: String, params: JSON) throws(RPCError) { self = try Self.table.read(method, params) }

    /// What a request of a method may bring; the usual where there is no such method.
    public static func limits(of method: String) -> MethodLimits { table.limits[method] ?? .usual }
}

/// The methods of a service: each once, by the case of ``ServiceRequest`` that holds its parameters.
public struct MethodTable<Requests: Sendable>: Sendable {
    let descriptions: [MethodDescription]
    /// Of the methods that declare other than the usual ones.
    let limits: [String: MethodLimits]
    private let readers: [String: Reader]

    /// Makes a request of parameters.
    typealias Reader = @Sendable (JSON) throws(RPCError) -> Requests

    /// One method.
    struct Row: Sendable {
        let description: MethodDescription
        let limits: MethodLimits
        let read: Reader

        /// - Parameters:
        ///   - make: the case of the method's request
        ///   - attachments: what travels as attachments, in words; empty for nothing
        ///   - limits: what a request may bring: attachments of its own, and JSON above 1 MiB
        static func method<R: Request>(
            _ make: @escaping @Sendable (R) -> Requests,
            attachments: String = "",
            limits: MethodLimits = .usual
        ) -> Row {
            Row(
                description: MethodDescription(R.self, attachments: attachments),
                limits: limits
            ) { params throws(RPCError) in
                make(try R(params: params))
            }
        }
    }

    init(_ rows: [Row]) {
        descriptions = rows.map(\.description)
        let special = rows.filter { $0.limits != .usual }
        limits = Dictionary(special.map { ($0.description.name, $0.limits) }) { first, _ in first }
        readers = Dictionary(rows.map { ($0.description.name, $0.read) }) { first, _ in first }
    }

    func read(_ method: String, _ params: JSON) throws(RPCError) -> Requests {
        guard let read = readers[method] else {
            throw Refusal.methodNotFound.error(
                "there is no method \(method.prefix(64)); rpc.discover describes those there are",
                ["methods": JSON(descriptions.map(\.name))]
            )
        }
        return try read(params)
    }
}

extension MethodLimits {
    /// For fetches, whose predicates list values, and for requests that name thousands of assets: 4 MiB of JSON.
    static let large = MethodLimits(maxJSONBytes: 4 << 20)
    /// For transactions: as much JSON as a message holds, and attachments.
    static let transaction = MethodLimits(maxJSONBytes: 16 << 20, takesAttachments: true)
    /// The usual JSON, and attachments.
    static let withAttachments = MethodLimits(takesAttachments: true)
}
