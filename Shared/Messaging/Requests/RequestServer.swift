public import Basics
import CZeroMQ
import Dispatch
public import JSONValue
public import Logging

/// A server of requests at one address: JSON-RPC 2.0 over a ROUTER socket.
///
/// Messages are received and sent on the poll thread. Handlers run on Swift's concurrent executor, or on one of their
/// own; replies that need no waiting are made on the poll thread.
public actor RequestServer: SocketOwner {
    let thread: PollThread
    /// The registration for keys removed from the list of the server's domain; nil without CURVE.
    private let revocations: ZAPAuthenticator.RevocationSubscription?
    let limits: MessagingLimits
    let clock: MonotonicClock
    let logger: Logger
    let handler: any RequestHandler
    let events: ServerEventQueue
    let wakeup: PollWakeup
    /// The memory for requests and replies.
    private let capacity: ServerCapacity

    let socketBox: SocketBox<MonitoredSocket>
    var state: RequestServerStateMachine
    /// Messages of this pass. They are passed to libzmq together, so that its I/O thread is woken once for all of them
    /// and writes those to one peer with one system call.
    var outgoing: [(message: OutgoingMessage, connection: Connection)] = []
    /// Connections with messages that libzmq did not accept, and when to retry.
    var blocked: Set<ConnectionID> = []
    var blockedPause: Int64 = 0
    var blockedUntil: Int64 = 0
    /// The time of the next check of the outbox, and whether at most half of it was free at the previous one.
    var nextOutboxCheck = Int64.min
    var isOutboxShort = false
    var disconnections = LogThrottle()
    /// The tasks of the running requests.
    var tasks: [ObjectIdentifier: Task<Void, Never>] = [:]
    var workWaiter: CheckedContinuation<Void, Never>?

    /// The bound address, with the actual port if the given one left it open.
    public nonisolated let boundAddress: EndpointAddress

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Binds; requests are received once ``run()`` is called.
    ///
    /// A stale socket file at an ipc path is replaced, so the caller must hold a lock on that path.
    ///
    /// - Parameter capacity: shared by the servers of one service
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none,
        capacity: ServerCapacity? = nil,
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
        let capacity = capacity ?? ServerCapacity(limits)
        self.state = RequestServerStateMachine(
            transport: boundAddress.transport,
            limits: limits,
            capacity: capacity,
            peers: PeerTable(thread.context, boundAddress, security, maxPerKey: limits.connectionsPerKey),
            isAdmitted: isAdmitted,
            cachedPermission: { handler.cachedPermission(of: $0, key: $1) },
            methodLimits: { handler.limits(of: $0) }
        )
        self.thread = thread
        self.limits = limits
        self.capacity = capacity
        self.clock = clock
        self.logger = logger
        self.handler = handler
        self.wakeup = thread.loop.makeWakeup()
        let events = ServerEventQueue(wakeup: wakeup, limits: limits)
        self.events = events
        self.revocations = security.domain.map { domain in
            authenticator.addRevocationHook(for: domain) { events.post(.revoked($0)) }
        }
        self.socketBox = SocketBox(socket)
        thread.loop.add(self, socketBox, wakeup)
    }

    deinit { thread.loop.remove(wakeup) }

    /// Returns the counters, by name.
    public func metrics() -> JSONObject {
        let connections = state.connections
        return state.metrics.json(
            open: connections.byRouting.values.reduce(0) { $0 + $1.open.count },
            waiting: state.waitingCount,
            running: state.running,
            connections: connections.byRouting.count,
            seen: connections.seen,
            outboxBytes: connections.byRouting.values.reduce(0) { $0 + $1.outbox.usage.bytes },
            requestBytes: capacity.requests.bytesInUse
        )
    }

    /// Ends the open and waiting requests of identities whose access has changed, if the handler refuses them now:
    /// ``RequestHandler/reviewError(of:for:_:)``.
    public nonisolated func review(_ identities: Set<String>) { events.post(.review(identities)) }

    /// Runs one pass of the poll loop, in this order: the events of tasks, waiting requests that may be opened now,
    /// received messages, the messages to send, expired deadlines, and connections that have to end.
    ///
    /// Waiting requests come before received ones, because they arrived earlier. The responses of expired requests are
    /// sent at the end of the same pass.
    func poll(hasEvents: Bool) -> PollInterest {
        var interest = PollInterest()
        for event in events.removeAll() { handleServerEvent(event) }
        openWaiting()
        if isReceiving { interest.hasMoreWork = receive(hasEvents: hasEvents) }
        flushOutgoing()
        retryBlocked()
        checkTime()
        endConnectionsWithEndlessMessages(isDrained: !interest.hasMoreWork)
        flushOutgoing()
        if state.mayOpenWaiting { interest.hasMoreWork = true }
        resumeServing()
        interest.wantsInput = isReceiving
        interest.wakeAfter = nextWake()
        return interest
    }

    private var isReceiving: Bool { state.stage != .idle && state.stage != .closed }

    private func nextWake() -> Int64? {
        var nearest = blocked.isEmpty ? state.nextTime : min(state.nextTime, blockedUntil)
        if isOutboxShort { nearest = min(nearest, nextOutboxCheck) }
        let peers = state.connections.peers
        nearest = min(nearest, peers.nextCheck, peers.nextEndlessMessageCheck)
        return nearest == .max ? nil : max(0, nearest.addingClamped(-clock.nowMicroseconds()))
    }

    /// Closes the socket and ends every request; called last, or when the poll thread ends.
    func closeNow() {
        guard state.stage != .closed else { return }
        flushOutgoing()
        for connection in state.close() { endRequests(of: connection, .stopping) }
        thread.loop.remove(wakeup)
        socketBox.close()
        resumeServing()
    }
}

extension RequestServer {
    /// Serves requests until the task is cancelled. Then it accepts no more, lets running requests finish for up to
    /// ``MessagingLimits/drainTimeout``, sends queued messages and closes.
    public func run() async {
        guard state.serve() else { return }
        wakeup.signal()
        // A separate task, so that cancelling this one does not cancel the running requests.
        let serving = Task { await serve() }
        await withTaskCancellationHandler {
            await serving.value
        } onCancel: {
            events.post(.stop)
        }
    }

    private func serve() async {
        while state.expectsWork { await waitForWork() }
        for task in tasks.values { await task.value }
        guard state.flush(at: clock.nowMicroseconds()) else { return }
        wakeup.signal()
        while case .flushing = state.stage { await waitForWork() }
    }

    private func waitForWork() async {
        await withCheckedContinuation { workWaiter = $0 }
    }

    /// Runs an open request's handler in a task.
    func start(_ request: OpenRequest) {
        let execution = RequestExecution(request: request, handler: handler, events: events)
        let executor = handler.executor(for: request.incoming, request.context)
        let task = Task(executorPreference: executor) { @concurrent in await execution.run() }
        tasks[ObjectIdentifier(request)] = task
        request.signal.attach(task)
    }

    /// Resumes the serving task if there will be no more requests.
    func resumeServing() {
        let isFlushing = if case .flushing = state.stage { true } else { false }
        guard !(state.expectsWork || isFlushing), let waiter = workWaiter else { return }
        workWaiter = nil
        waiter.resume()
    }

    /// Handles expired deadlines and timeouts.
    private func checkTime() {
        let now = clock.nowMicroseconds()
        for ending in state.endExpired(at: now) { endRequest(ending) }
        for response in state.expiredWaiting(at: now) { respond(with: response) }
        endStalled(at: now)
        endSilent(at: now)
        if case .flushing(let until) = state.stage, now >= until || blocked.isEmpty { closeNow() }
    }

    /// Sends the response of a request that ends early, if its peer is still connected, and cancels its task.
    func endRequest(_ ending: RequestServerStateMachine.Ending) {
        ending.request.credit?.close()
        if let response = ending.response { respond(with: response) }
        ending.request.signal.end(ending.reason)
    }
}

extension RequestServer {
    /// Handles an event from a task.
    private func handleServerEvent(_ event: ServerEvent) {
        switch event {
        case .notification(let request, let message):
            if let connection = state.notified(request) { addOutgoing(message, to: connection) }
        case .finished(let request, let message, let failure):
            tasks[ObjectIdentifier(request)] = nil
            request.credit?.close()
            guard let connection = state.finished(request, failure: failure) else { return }
            addOutgoing(message, to: connection)
        case .parsed(let id, let parsed, let message, let prefix):
            continueAfterParsing(id, parsed, message, prefix)
        case .revoked(let keys):
            for ending in state.endRequests(ofKeys: keys) { endRequest(ending) }
            for response in state.removeWaiting(ofKeys: keys) { respond(with: response) }
        case .review(let identities):
            for ending in state.endRequests(ofIdentities: identities, handler.reviewError) { endRequest(ending) }
            for response in state.removeWaiting(of: identities, handler.reviewError) { respond(with: response) }
        case .stop:
            for ending in state.drain(at: clock.nowMicroseconds()) { endRequest(ending) }
            for response in state.stopWaiting() { respond(with: response) }
        }
    }
}

// MARK: - Receiving

extension RequestServer {
    /// Receives and handles messages, up to the budget.
    ///
    /// - Returns: whether there may be more.
    private func receive(hasEvents: Bool) -> Bool {
        guard socketBox.socket != nil else { return false }
        var batch: [IncomingMessage] = []
        var bytes = 0
        while batch.count < limits.receiveBudget, bytes < limits.receiveBudgetBytes,
            let message = socketBox.socket?.socket.receive(
                maxFrames: limits.maxFrames + 2,
                maxBytes: limits.maxMessageBytes + 512,
                leadingFrames: 1,
                wantsPeer: true,
                isPeerKnown: { state.connections.byRouting[$0]?.descriptor == $1 }
            )
        {
            bytes += message.totalBytes
            batch.append(message)
        }
        // Events are read after the messages, so that messages of a descriptor's new owner are never attributed to its
        // previous one.
        if hasEvents || !batch.isEmpty { handleConnectionEvents() }
        state.metrics.bytesIn += bytes
        for message in batch { handleMessage(message) }
        return batch.count == limits.receiveBudget || bytes >= limits.receiveBudgetBytes
    }

    /// Reads and handles the events of the socket's connections.
    func handleConnectionEvents() {
        for event in socketBox.socket?.events() ?? [] {
            switch event {
            case .opened(let descriptor): state.opened(descriptor, at: clock.nowMicroseconds())
            case .closed(let descriptor):
                for connection in state.closed(descriptor) { endRequests(of: connection, .connectionLost) }
            case .refused: state.metrics.handshakesRefused += 1
            case .ready: break
            }
        }
    }

    private func handleMessage(_ message: IncomingMessage) {
        let (connection, replaced) = state.connection(of: message)
        if let replaced { endRequests(of: replaced, .connectionLost) }
        guard let connection else { return }
        if let descriptor = connection.descriptor { state.connections.peers.delivered(descriptor) }
        guard !connection.isExcess else { return disconnect(connection, "its key has too many connections") }
        carryOut(state.received(message, on: connection, at: clock.nowMicroseconds()))
    }

    /// Continues after a large JSON frame was parsed: handles it and the messages queued behind it.
    private func continueAfterParsing(
        _ id: ConnectionID,
        _ parsed: RPCMessage,
        _ message: IncomingMessage,
        _ prefix: [Bytes]
    ) {
        let now = clock.nowMicroseconds()
        guard let decision = state.parsed(parsed, message, prefix: prefix, of: id, at: now) else { return }
        carryOut(decision)
        while let next = state.nextBehindLarge(of: id, at: now) { carryOut(next) }
    }

    /// Opens waiting requests, up to the budget.
    private func openWaiting() {
        guard state.mayOpenWaiting else { return }
        let now = clock.nowMicroseconds()
        for _ in 0..<limits.receiveBudget {
            guard let decision = state.nextWaiting(at: now) else { return }
            carryOut(decision)
        }
    }

    /// Carries out the decision about a message.
    private func carryOut(_ decision: RequestServerStateMachine.Decision) {
        switch decision {
        case .nothing: break
        case .respond(let response): respond(with: response)
        case .cancelWaiting(let cancelled, let response):
            respond(with: cancelled)
            if let response { respond(with: response) }
        case .cancel(let request, let response):
            request.signal.end(.cancelled)
            if let response { respond(with: response) }
        case .addCredit(let request, let bytes, let response):
            request.credit?.release(bytes)
            if let response { respond(with: response) }
        case .parse(let message, let recipient): parse(message, recipient)
        case .run(let request):
            if let reply = handler.replyAtOnce(to: request.incoming, request.context),
                respondAtOnce(with: reply, to: request)
            {
                return
            }
            start(state.open(request))
        }
    }

    /// The queue that parses large JSON frames, one after the other. Each connection has at most one frame in it, so
    /// that connections are served fairly.
    private static let parser = DispatchQueue(label: "large-requests")

    private func parse(_ message: IncomingMessage, _ recipient: RequestServerStateMachine.Recipient) {
        let (limits, events, id, prefix) = (limits, events, recipient.connection.id, recipient.prefix)
        Self.parser.async {
            events.post(.parsed(id, RPCMessage(of: message, limits: limits), message, prefix: prefix))
        }
    }
}
