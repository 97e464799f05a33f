public import Basics
import CZeroMQ
public import JSONValue
public import Logging

/// A server of requests at one address: JSON-RPC 2.0 over a ROUTER socket.
///
/// Messages are received and sent on the poll thread; handlers run on the pool, except for replies that need no
/// waiting, which are made on the poll thread.
public actor RequestServer: SocketOwner {
    let thread: PollThread
    /// The registration for keys removed from that list.
    private let listening: ZAPAuthenticator.RevocationSubscription?
    let limits: MessagingLimits
    let clock: MonotonicClock
    let logger: Logger
    let handler: any RequestHandler
    let outbox: ServerOutbox
    let wakeup: PollWakeup
    /// Outbox capacity of all connections together.
    let outboxSemaphore: ByteSemaphore
    /// The memory used by the requests of the service.
    private let memory: RequestMemory

    let socketBox: SocketBox<MonitoredSocket>
    var state: RequestServerStateMachine
    /// Connections with messages that libzmq did not accept, and when to retry.
    var blocked: Set<ConnectionID> = []
    var blockedPause: Int64 = 0
    var blockedUntil: Int64 = 0
    /// The tasks of the running requests.
    var tasks: [ObjectIdentifier: Task<Void, Never>] = [:]
    /// Requests accepted but not yet started.
    var work: [RequestExecution] = []
    var workWaiter: CheckedContinuation<Void, Never>?

    /// The bound address, with the actual port if the given one left it open.
    public nonisolated let boundAddress: EndpointAddress

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Binds; requests are received once ``run()`` is called.
    ///
    /// A stale socket file at an ipc path is replaced, so the caller must hold a lock on that path.
    ///
    /// - Parameter memory: shared by the servers of one service
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none,
        memory: RequestMemory = RequestMemory(),
        clock: MonotonicClock = .system,
        logger: Logger,
        handler: any RequestHandler
    ) throws(MessagingError) {
        let plain = try Socket(ZMQ_ROUTER, context: thread.context)
        try plain.configure(
            limits,
            send: limits.sendHighWaterMark,
            receive: limits.requestHighWaterMark,
            linger: limits.linger
        )
        try plain.set(ZMQ_ROUTER_MANDATORY, 1 as Int32)
        try plain.set(ZMQ_ROUTER_HANDOVER, 0 as Int32)
        let socket = try MonitoredSocket(plain, context: thread.context)
        self.boundAddress = try socket.socket.bind(address, security: security)
        let authenticator = thread.context.authenticator
        var isAdmitted: (@Sendable (CurveIdentity) -> Bool)?
        if let domain = security.domain { isAdmitted = { authenticator.isAdmitted($0, to: domain) } }
        self.state = RequestServerStateMachine(
            transport: boundAddress.transport,
            limits: limits,
            memory: memory,
            isAdmitted: isAdmitted,
            methodLimits: { handler.limits(of: $0) }
        )
        self.thread = thread
        self.limits = limits
        self.memory = memory
        self.clock = clock
        self.logger = logger
        self.handler = handler
        self.wakeup = thread.loop.makeWakeup()
        let outbox = ServerOutbox(wakeup: wakeup, limits: limits)
        self.outbox = outbox
        self.listening = security.domain.map { domain in
            authenticator.listen(to: domain) { outbox.post(.revoked($0)) }
        }
        self.outboxSemaphore = ByteSemaphore(
            available: limits.outboxBytes,
            maxAvailable: limits.outboxBytes,
            maxWaitingBytes: limits.outboxBytes
        )
        self.socketBox = SocketBox(socket)
        thread.loop.add(self, socketBox, wakeup)
    }

    deinit { thread.loop.remove(wakeup) }

    /// Returns the counters, by name.
    public func metrics() -> JSONObject {
        let connections = state.connections
        return state.metrics.json(
            open: connections.byRouting.values.reduce(0) { $0 + $1.open.count },
            running: state.running,
            connections: connections.byRouting.count,
            seen: connections.seen,
            outboxBytes: limits.outboxBytes - outboxSemaphore.available,
            requestBytes: memory.bytesInUse
        )
    }

    /// Runs one pass of the poll loop.
    func poll() -> PollInterest {
        var poll = PollInterest()
        for event in outbox.drain() { perform(event) }
        if isReceiving { poll.hasMoreWork = receive() }
        retryBlocked()
        checkTime()
        startNextRequests()
        poll.wantsInput = isReceiving
        poll.wakeAfter = nextWake()
        return poll
    }

    private var isReceiving: Bool { state.stage != .idle && state.stage != .closed }

    private func nextWake() -> Int64? {
        let nearest = blocked.isEmpty ? state.nextTime : min(state.nextTime, blockedUntil)
        return nearest == .max ? nil : max(0, nearest.addingClamped(-clock.nowMicroseconds()))
    }

    /// Closes the socket and ends every request; called last, or when the poll thread ends.
    func closeNow() {
        guard state.stage != .closed else { return }
        for connection in state.close() { end(connection, .stopping) }
        thread.loop.remove(wakeup)
        socketBox.close()
        startNextRequests()
    }
}
