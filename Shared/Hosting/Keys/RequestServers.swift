public import Basics
public import JSONValue
public import Logging
public import Messaging
public import ServiceLifecycle

/// The request servers of a service: a local one and, if the service listens on the network, a remote one, with the
/// same handler.
public struct RequestServers: Sendable {
    private let local: RequestServer
    private let remote: RequestServer?

    /// Binds the servers.
    ///
    /// - Parameters:
    ///   - listener: the network listener; nil for local clients only
    ///   - security: security of the local address: `.none` or `.trustedLoopback`
    public init(
        _ endpoint: EndpointName,
        address: EndpointAddress,
        listener: NetworkListener?,
        thread: PollThread,
        limits: MessagingLimits = MessagingLimits(),
        security: SocketSecurity = .none,
        traffic: TrafficLimits = TrafficLimits(),
        clock: MonotonicClock = .system,
        logger: Logger,
        handler: any RequestHandler
    ) throws(MessagingError) {
        var limits = limits
        traffic.apply(to: &limits)
        let capacity = ServerCapacity(limits)
        local = try RequestServer(
            address: address,
            thread: thread,
            limits: limits,
            security: security,
            capacity: capacity,
            clock: clock,
            logger: logger,
            handler: handler
        )
        if let listener {
            remote = try RequestServer(
                address: listener.address(of: endpoint),
                thread: thread,
                limits: limits,
                security: listener.security(of: endpoint),
                capacity: capacity,
                clock: clock,
                logger: logger,
                handler: handler
            )
        } else {
            remote = nil
        }
        LoopbackWarning.log([local.boundAddress], logger)
    }

    /// The address for local clients.
    public var address: EndpointAddress { local.boundAddress }

    /// All bound addresses, for the log.
    public var addresses: [String] { [local, remote].compactMap { $0?.boundAddress.description } }

    /// The components that serve requests.
    public var components: [any Service] { [local, remote].compactMap { $0 }.map(RequestServerComponent.init) }

    /// Ends the requests of identities whose access has changed, as far as the handler refuses them now.
    public func review(_ identities: Set<String>) {
        local.review(identities)
        remote?.review(identities)
    }

    /// Serves until the task is cancelled.
    public func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await local.run() }
            if let remote { group.addTask { await remote.run() } }
        }
    }

    /// Returns the metrics of the local server; those of the remote server are the member `tcp`, and those of
    /// authentication the member `door`.
    public func metrics() async -> JSONObject {
        var metrics = await local.metrics()
        if let remote {
            metrics["tcp"] = .object(await remote.metrics())
            metrics["door"] = .object(MessagingContext.shared.authenticator.metrics())
        }
        return metrics
    }
}
