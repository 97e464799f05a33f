public import Contracts
public import JSONValue
public import Messaging
import Synchronization

/// The check at the entry of a service: compares the access that a method declares with what the identity may do,
/// before anything of the method runs.
///
/// Requests of the user who runs the services (role `host`) pass with one comparison; others cost one load from memory
/// and one look-up of the method.
public struct GuardedHandler: RequestHandler {
    private let handler: any RequestHandler
    private let access: @Sendable (String) -> MethodAccess?
    private let table: AccessTable
    private let refusalCounts: RefusalCounts

    /// - Parameters:
    ///   - access: returns the access that a method needs; nil for a method that the service does not have
    public init(
        _ handler: any RequestHandler,
        access: @escaping @Sendable (String) -> MethodAccess?,
        table: AccessTable,
        refusals: RefusalCounts
    ) {
        self.handler = handler
        self.access = access
        self.table = table
        self.refusalCounts = refusals
    }

    @concurrent
    public func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        var permission = Permission(byte: context.cachedPermission?.value ?? 0)
        if permission.role == .unknown, let needed = access(request.method), needed != .public {
            do throws(RPCError) {
                permission = try await table.permission(of: context.identity, context.cachedPermission)
            } catch {
                refusalCounts.count(context.identity)
                throw error
            }
        }
        if let error = accessError(of: request.method, for: context.identity, permission) {
            refusalCounts.count(context.identity)
            throw error
        }
        // Queues that clients share serve them in turn.
        return try await WorkSource.$current.withValue(WorkSource(of: context)) { () async -> Result<Reply, RPCError> in
            do throws(RPCError) { return .success(try await handler.handle(request, context)) } catch {
                return .failure(error)
            }
        }.get()
    }

    public func replyAtOnce(to request: IncomingRequest, _ context: RequestContext) -> Reply? {
        let permission = Permission(byte: context.cachedPermission?.value ?? 0)
        guard permission.role != .unknown,
            accessError(of: request.method, for: context.identity, permission) == nil
        else { return nil }
        // The handler asks the catalog whether a limited view has the asset.
        if permission.role == .limited, access(request.method) != .public { return nil }
        return handler.replyAtOnce(to: request, context)
    }

    public func executor(for request: IncomingRequest, _ context: RequestContext) -> (any TaskExecutor)? {
        handler.executor(for: request, context)
    }

    public func limits(of method: String) -> MethodLimits { handler.limits(of: method) }

    public func cachedPermission(of identity: String, key: String?) -> CachedPermission? {
        table.cachedPermission(of: identity, key: key)
    }

    public func reviewError(of method: String, for identity: String, _ cached: CachedPermission?) -> RPCError? {
        let permission = Permission(byte: cached?.value ?? 0)
        // The view of a request is decided when it begins. One that began before its identity's view was limited ends.
        if permission.role == .limited, let needed = access(method), needed != .public, needed != .add {
            refusalCounts.count(identity)
            return ErrorCode.accessDenied.error(
                "the owner of the library has changed what \(identity) may see; send the request again",
                ["identity": .string(identity), "access": .string(needed.rawValue)]
            )
        }
        // A request with unknown permission was allowed before, and is checked again when the permission is known.
        guard permission.role != .unknown, let error = accessError(of: method, for: identity, permission) else {
            return nil
        }
        refusalCounts.count(identity)
        // For a running request, an undecided grant means that the access was revoked.
        return error.errorCode == .notDetermined ? ErrorCode.accessDenied.error(error.message, error.data) : error
    }

    public func connectionEnded(_ connection: ConnectionID) { handler.connectionEnded(connection) }

    /// Returns the error of a request whose method needs more access than the permission gives; nil if it may run.
    private func accessError(of method: String, for identity: String, _ permission: Permission) -> RPCError? {
        // A method that does not exist is refused by the service, with the names of those that exist.
        guard permission.role != .host, let needed = access(method), needed != .public else { return nil }
        return permission.refusal(of: method, needing: needed, for: identity)
    }
}

// MARK: - The number of refused requests

/// The number of requests that were refused because of missing access, by identity.
public final class RefusalCounts: Sendable {
    private let counts = Mutex<[String: Int]>([:])
    /// The maximum number of identities that are counted individually; the others are counted together.
    private static let limit = 1000

    public init() {}

    public func count(_ identity: String) {
        counts.withLock { counts in
            counts[counts[identity] != nil || counts.count < Self.limit ? identity : "others", default: 0] += 1
        }
    }

    /// The counters by identity, for the method `figures`.
    public var metrics: JSONObject {
        var object = JSONObject()
        for (identity, count) in counts.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            object[identity] = JSON(count)
        }
        return ["refused": .object(object)]
    }
}
