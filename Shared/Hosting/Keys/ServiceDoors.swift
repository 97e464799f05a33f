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
    ///   - door: the network listener; nil for local clients only
    ///   - security: security of the local address: `.none` or `.trustedLoopback`
    public init(
        _ endpoint: EndpointName,
        address: EndpointAddress,
        door: PublicDoor?,
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
        let memory = RequestMemory()
        local = try RequestServer(
            address: address,
            thread: thread,
            limits: limits,
            security: security,
            memory: memory,
            clock: clock,
            logger: logger,
            handler: handler
        )
        if let door {
            remote = try RequestServer(
                address: door.address(of: endpoint),
                thread: thread,
                limits: limits,
                security: door.security(of: endpoint),
                memory: memory,
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
    public var parts: [any Service] { [local, remote].compactMap { $0 }.map(RequestServerPart.init) }

    /// Serves until the task is cancelled.
    public func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await local.run() }
            if let remote { group.addTask { await remote.run() } }
        }
    }

    /// Returns metrics of the local server; those of the remote server are below `tcp`, of authentication below `door`.
    public func figures() async -> JSONObject {
        var figures = await local.figures()
        if let remote {
            figures["tcp"] = .object(await remote.figures())
            figures["door"] = .object(MessagingContext.shared.doorkeeper.figures())
        }
        return figures
    }
}
