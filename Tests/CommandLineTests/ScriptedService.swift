import Contracts
import JSONValue
import Messaging
import PhotoModel

/// A service whose responses a test defines.
struct ScriptedService: RequestHandler {
    typealias Script = @Sendable (IncomingRequest, RequestContext) async throws(RPCError) -> Reply
    let script: Script

    init(_ script: @escaping Script) { self.script = script }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        try await script(request, context)
    }

    /// The reply of a healthy service.
    static var health: Reply {
        Reply(Health.Result(service: "test", version: "1", isHealthy: true, problems: [], sequence: 1).json)
    }

    static let token = ChangeToken(library: String(repeating: "0", count: 32), sequence: 1)

    /// Returns the identifier of an object of a kind, for example "a" for assets.
    static func id(_ kind: String, _ number: Int) -> ObjectID {
        let digits = "\(number)"
        // Only identifiers of derived objects have no time.
        return ObjectID(kind + "01" + String(repeating: "0", count: 24 - digits.count) + digits) ?? .none
    }
}
