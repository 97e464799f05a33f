import Contracts
public import Messaging

/// The client for which work is done. Queues that clients share serve the sources in turn, so that a client with much
/// work does not delay the others.
public enum WorkSource: Hashable, Sendable {
    /// A client by its identity. A key is one client, however many connections it has.
    case identity(String)
    /// A connection of the user who runs the services, or of a service on another machine: each is a client of its own.
    case connection(ConnectionID)
    /// The service's own work.
    case service

    /// The client whose request the current task answers.
    @TaskLocal public static var current = WorkSource.service

    /// The client that has sent a request; if a service has sent it, the client for which the service acts.
    ///
    /// - Parameter client: the client for which a service acts; nil for none. It is ignored if the sender is not a
    ///   service.
    public init(of context: RequestContext, onBehalfOf client: String? = nil) {
        switch Permission(byte: context.cachedPermission?.value ?? 0).role {
        case .host, .service: self = client.map(Self.identity) ?? .connection(context.connection)
        default: self = .identity(context.identity)
        }
    }

    /// Returns the number of elements that each source may have in a queue even if others have filled it.
    public static func reservedCount(of limit: Int) -> Int { min(8, limit / 16) }
}
