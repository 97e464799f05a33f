public import Basics
import CZeroMQ
import DequeModule
public import JSONValue
public import Logging

/// A server of requests at one address: JSON-RPC 2.0 over a ROUTER socket.
///
/// Messages are received and sent on the poll thread; handlers run on Swift's concurrent executor, or on
/// that of the handler, except for replies that need no waiting, which are made on the poll thread.
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
    /// Messages of this pass. They are passed to libzmq together, so that its I/O thread is woken once for all of them
    /// and writes those to one peer with one system call.
    private var leaving: [(message: OutgoingMessage, connection: Connection)] = []
    /// Connections with messages that libzmq did not accept, and when to retry.
    var blocked: Set<ConnectionID> = []
    var blockedPause: Int64 = 0
    var blockedUntil: Int64 = 0
    /// When the outbox is looked at next, and whether less than half of it was free the last time.
    var outboxCheck = Int64.min
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
            accessMark: { handler.accessMark(of: $0, key: $1) },
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
            waiting: state.waitingCount,
            running: state.running,
            connections: connections.byRouting.count,
            seen: connections.seen,
            outboxBytes: limits.outboxBytes - outboxSemaphore.available,
            requestBytes: memory.bytesInUse
        )
    }

    /// Ends the open and waiting requests of identities whose access has changed, as far as the handler refuses them now:
    /// ``RequestHandler/refusal(of:for:_:)``.
    public nonisolated func review(_ identities: Set<String>) { outbox.post(.review(identities)) }

    /// Runs one pass of the poll loop.
    func poll(hasEvents: Bool) -> PollInterest {
        var poll = PollInterest()
        for event in outbox.drain() { handle(event) }
        openWaiting()
        if isReceiving { poll.hasMoreWork = receive(hasEvents: hasEvents) }
        sendLeaving()
        retryBlocked()
        checkTime()
        sendLeaving()
        if state.mayOpenWaiting { poll.hasMoreWork = true }
        resumeServing()
        poll.wantsInput = isReceiving
        poll.wakeAfter = nextWake()
        return poll
    }

    private var isReceiving: Bool { state.stage != .idle && state.stage != .closed }

    private func nextWake() -> Int64? {
        var nearest = blocked.isEmpty ? state.nextTime : min(state.nextTime, blockedUntil)
        if isOutboxShort { nearest = min(nearest, outboxCheck) }
        return nearest == .max ? nil : max(0, nearest.addingClamped(-clock.nowMicroseconds()))
    }

    /// Closes the socket and ends every request; called last, or when the poll thread ends.
    func closeNow() {
        guard state.stage != .closed else { return }
        sendLeaving()
        for connection in state.close() { end(connection, .stopping) }
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
            outbox.post(.stop)
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
        let execution = RequestExecution(request: request, handler: handler, outbox: outbox)
        let executor = handler.executor(for: request.incoming)
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
    func checkTime() {
        let now = clock.nowMicroseconds()
        for ending in state.endings(at: now) { carryOut(ending) }
        for answer in state.expiredWaiting(at: now) { send(answer) }
        endStalled(at: now)
        if case .flushing(let until) = state.stage, now >= until || blocked.isEmpty { closeNow() }
    }

    /// Answers a request that ends early, if its peer is still there, and cancels its task.
    func carryOut(_ ending: RequestServerStateMachine.Ending) {
        ending.request.credit?.close()
        if let answer = ending.answer { send(answer) }
        ending.request.signal.cancel(ending.reason)
    }
}

extension RequestServer {
    /// Handles an event from a task.
    func handle(_ event: ServerEvent) {
        switch event {
        case .notification(let request, let message):
            if let connection = state.notified(request) { transmit(message, to: connection) }
        case .answer(let request, let message, let failure):
            tasks[ObjectIdentifier(request)] = nil
            request.credit?.close()
            guard let connection = state.finished(request, failure: failure) else { return }
            transmit(message, to: connection)
        case .parsed(let id, let envelope, let message, let prefix):
            resume(id, envelope, message, prefix)
        case .revoked(let keys):
            for ending in state.endings(ofKeys: keys) { carryOut(ending) }
            for answer in state.removeWaiting(ofKeys: keys) { send(answer) }
        case .review(let identities):
            for ending in state.endings(of: identities, handler.refusal) { carryOut(ending) }
            for answer in state.removeWaiting(of: identities, handler.refusal) { send(answer) }
        case .stop:
            for ending in state.drain(at: clock.nowMicroseconds()) { carryOut(ending) }
            for answer in state.stopWaiting() { send(answer) }
        }
    }

    /// Sends a reply made on the poll thread; returns false if it has to wait for capacity or is too large.
    func send(_ reply: Reply, to request: RequestServerStateMachine.AcceptedRequest) -> Bool {
        let connection = request.recipient.connection
        let frames = [reply.frame(id: request.incoming.id)] + reply.attachments
        let bytes = frames.reduce(0) { $0 + $1.count }
        guard limits.violation(of: frames) == nil, connection.outboxSemaphore.tryAcquire(bytes) else { return false }
        guard outboxSemaphore.tryAcquire(bytes, for: connection.outboxSemaphore) else {
            connection.outboxSemaphore.release(bytes)
            return false
        }
        state.metrics.answers += 1
        state.metrics.answersAtOnce += 1
        let reservation = ByteReservation(bytes: bytes, semaphores: [connection.outboxSemaphore, outboxSemaphore])
        transmit(OutgoingMessage(request.recipient.prefix + frames, reservation: reservation), to: connection)
        return true
    }

    /// Sends a response of the server itself; it never waits for capacity.
    func send(_ answer: RequestServerStateMachine.Answer) {
        let (connection, prefix) = (answer.recipient.connection, answer.recipient.prefix)
        let error: RPCError
        switch answer.content {
        case .error(let content): error = content
        case .result(let result):
            let frame = EnvelopeWriter.result(id: answer.id, result)
            return transmit(OutgoingMessage(prefix + [frame]), to: connection)
        }
        state.metrics.answers += 1
        state.metrics.errors[error.name, default: 0] += 1
        let frame = EnvelopeWriter.error(id: answer.id, error)
        connection.outboxSemaphore.acquireWithoutWaiting(frame.count)
        outboxSemaphore.acquireWithoutWaiting(frame.count)
        let reservation = ByteReservation(
            bytes: frame.count,
            semaphores: [connection.outboxSemaphore, outboxSemaphore]
        )
        transmit(OutgoingMessage(prefix + [frame], reservation: reservation), to: connection)
    }

    /// Sends a message at the end of the pass, or once a few wait for it.
    func transmit(_ message: OutgoingMessage, to connection: Connection) {
        leaving.append((message, connection))
        if leaving.count >= Self.mostLeaving { sendLeaving() }
    }

    /// Messages that are sent together: more would delay the first of them.
    private static let mostLeaving = 32

    private func sendLeaving() {
        guard !leaving.isEmpty else { return }
        let messages = leaving
        leaving.removeAll(keepingCapacity: true)
        for (message, connection) in messages {
            send(message, to: connection)
            state.forgetIfIdle(connection)
        }
    }

    /// Sends a message now, or queues it until libzmq accepts it.
    private func send(_ message: OutgoingMessage, to connection: Connection) {
        var message = message
        if connection.queue.isEmpty, attempt(&message, connection) { return }
        guard state.connections[connection.id] != nil else { return }
        guard connection.queue.count < limits.outboxMessagesPerConnection else {
            state.metrics.messagesDropped += 1
            return
        }
        connection.queue.append(message)
        if blocked.insert(connection.id).inserted, blocked.count == 1 { pauseBlocked(Self.shortestPause) }
    }

    /// - Returns: whether the message is done with, sent or dropped.
    private func attempt(_ message: inout OutgoingMessage, _ connection: Connection) -> Bool {
        countEarlier(&message, connection)
        switch socketBox.socket?.socket.send(message) {
        case .sent:
            let bytes = message.byteCount
            state.metrics.bytesOut += bytes
            if !message.isCounted { connection.uncountedBytes += bytes }
            return true
        case .full: return false
        case .unreachable:
            state.metrics.messagesDropped += 1
            if state.remove(connection) { end(connection, .connectionLost) }
            return true
        case .failed, nil:
            state.metrics.messagesDropped += 1
            return true
        }
    }

    /// Counts with a message the small ones before it, of which libzmq may have many. Messages leave in order, so these
    /// have left once this one has.
    private func countEarlier(_ message: inout OutgoingMessage, _ connection: Connection) {
        let bytes = connection.uncountedBytes
        guard bytes >= OutgoingMessage.countedBytes else { return }
        connection.uncountedBytes = 0
        let semaphores = [connection.outboxSemaphore, outboxSemaphore]
        for gate in semaphores { gate.acquireWithoutWaiting(bytes) }
        message.reservation = ByteReservation(bytes: bytes, semaphores: semaphores, keeping: message.reservation)
    }

    private static let shortestPause: Int64 = 1000
    private static let longestPause: Int64 = 64_000

    /// Retries the peers whose queue was full.
    ///
    /// ROUTER's POLLOUT says only that *some* peer accepts messages, so these are retried after a pause that doubles
    /// while no message can be sent.
    func retryBlocked() {
        guard !blocked.isEmpty, clock.nowMicroseconds() >= blockedUntil else { return }
        var moved = false
        for id in blocked {
            guard let connection = state.connections[id] else {
                blocked.remove(id)
                continue
            }
            while var message = connection.queue.first {
                guard attempt(&message, connection) else {
                    connection.queue[0] = message
                    break
                }
                moved = true
                // The attempt empties the queue if it ends the connection.
                if !connection.queue.isEmpty { connection.queue.removeFirst() }
            }
            if connection.queue.isEmpty { blocked.remove(id) }
        }
        pauseBlocked(moved ? Self.shortestPause : min(blockedPause * 2, Self.longestPause))
    }

    private func pauseBlocked(_ pause: Int64) {
        blockedPause = pause
        blockedUntil = clock.nowMicroseconds().addingClamped(pause)
    }

    /// Ends the requests of a connection that was removed from the table.
    func end(_ connection: Connection, _ reason: TerminationReason) {
        for ending in state.end(connection, reason) { carryOut(ending) }
        connection.queue = []
        connection.outboxSemaphore.close()
        blocked.remove(connection.id)
        handler.connectionEnded(connection.id)
    }
}
