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
    /// The ZAP domain, whose list of keys applies; nil without CURVE.
    let domain: String?
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
    let memory: RequestMemory

    let socketBox: SocketBox<MonitoredSocket>
    var connections: ConnectionTable
    var currentMetrics = ServerMetrics()
    /// Connections with messages that libzmq did not accept, and when to retry.
    var blocked: Set<ConnectionID> = []
    var blockedPause: Int64 = 0
    var blockedUntil: Int64 = 0
    var running = 0
    /// The tasks of the running requests.
    var tasks: [ObjectIdentifier: Task<Void, Never>] = [:]
    /// The earliest deadline or an earlier time; it is recomputed when it is reached.
    var nextDeadline = Int64.max
    var stage = Stage.idle
    /// Requests accepted but not yet started.
    var work: [RequestExecution] = []
    var workWaiter: CheckedContinuation<Void, Never>?

    /// The stages of a server's life; times are in microseconds of its clock.
    enum Stage: Equatable {
        /// Bound, not receiving yet.
        case idle
        case serving
        /// Accepts no requests; running ones are cancelled at that time.
        case draining(until: Int64)
        /// All requests and their tasks have ended; queued messages may be sent until that time.
        case flushing(until: Int64)
        case closed
    }

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
        self.connections = ConnectionTable(transport: boundAddress.transport)
        self.thread = thread
        self.domain = security.domain
        self.limits = limits
        self.memory = memory
        self.clock = clock
        self.logger = logger
        self.handler = handler
        self.wakeup = thread.loop.makeWakeup()
        let outbox = ServerOutbox(wakeup: wakeup, limits: limits)
        self.outbox = outbox
        self.listening = security.domain.map { domain in
            thread.context.authenticator.listen(to: domain) { outbox.post(.revoked($0)) }
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
        let open = connections.byRouting.values.reduce(0) { $0 + $1.open.count }
        return currentMetrics.json(
            open: open,
            running: running,
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
        if stage != .idle, stage != .closed { poll.hasMoreWork = receive() }
        retryBlocked()
        checkTime()
        startNextRequests()
        poll.wantsInput = stage != .idle && stage != .closed
        poll.wakeAfter = nextWake()
        return poll
    }

    private func nextWake() -> Int64? {
        let now = clock.nowMicroseconds()
        var nearest = nextDeadline
        switch stage {
        case .draining(let until), .flushing(let until): nearest = min(nearest, until)
        case .idle, .serving, .closed: break
        }
        if !blocked.isEmpty { nearest = min(nearest, blockedUntil) }
        return nearest == .max ? nil : max(0, nearest.addingClamped(-now))
    }

    /// Closes the socket and ends every request; called last, or when the poll thread ends.
    func closeNow() {
        guard stage != .closed else { return }
        stage = .closed
        for connection in connections.byRouting.values { end(connection, .stopping) }
        connections = ConnectionTable(transport: boundAddress.transport)
        thread.loop.remove(wakeup)
        socketBox.close()
        startNextRequests()
    }
}
