public import JSONValue
public import Logging
public import Messaging
public import ServiceLifecycle

/// A service's servers: one on this machine and, where there is a door to the network, one there, with one handler.
public struct RequestServers: Sendable {
    private let local: RequestServer
    private let remote: RequestServer?

    /// Binds.
    ///
    /// - Parameter security: of the address on this machine: none, or that loopback addresses are trusted
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

    /// Where this machine's clients ask.
    public var address: EndpointAddress { local.boundAddress }

    /// All addresses, for the log.
    public var addresses: [String] { [local, remote].compactMap { $0?.boundAddress.description } }

    /// The parts that serve.
    public var parts: [any Service] { [local, remote].compactMap { $0 }.map(RequestServerPart.init) }

    /// Serves until the task is cancelled.
    public func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await local.run() }
            if let remote { group.addTask { await remote.run() } }
        }
    }

    /// What happened so far: of this machine's clients, of the others below `tcp`, and of who wanted in below `door`.
    public func figures() async -> JSONObject {
        var figures = await local.figures()
        if let remote {
            figures["tcp"] = .object(await remote.figures())
            figures["door"] = .object(MessagingContext.shared.doorkeeper.figures())
        }
        return figures
    }
}
