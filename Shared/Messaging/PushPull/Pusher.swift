public import Basics
import CZeroMQ
import DequeModule
public import JSONValue
import Synchronization

/// Pushes messages to a ``Puller``: PUSH. There is no acknowledgement: a sender that needs delivery repeats a message
/// until it sees its effect.
public actor Pusher: SocketOwner {
    private let thread: PollThread
    private let limits: MessagingLimits
    private let wakeup: PollWakeup
    /// Capacity for messages that are not sent yet, in bytes.
    private nonisolated let capacity: ByteSemaphore
    /// Messages of callers, not read by the poll thread yet; nil once the pusher is closed.
    private nonisolated let arriving = Mutex<[OutgoingMessage]?>([])
    /// Messages that libzmq did not accept yet.
    private var queue: Deque<OutgoingMessage> = []
    private let socketBox: SocketBox<MonitoredSocket>
    private var sent = 0
    /// The address of the puller.
    public nonisolated let address: EndpointAddress
    /// The state of the connection.
    public nonisolated let connection: ConnectionState

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Begins to connect; an absent puller is not an error.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none
    ) throws(MessagingError) {
        let plain = try Socket(ZMQ_PUSH, context: thread.context)
        try plain.configure(
            limits,
            send: limits.sendHighWaterMark,
            receive: 1,
            linger: limits.linger,
            hasHeartbeat: false
        )
        try plain.set(ZMQ_IMMEDIATE, 1 as Int32)
        let socket = try MonitoredSocket(plain, context: thread.context)
        try socket.socket.connect(address, security: security)
        self.address = address
        self.connection = ConnectionState(isReady: address.transport == .inproc)
        self.thread = thread
        self.limits = limits
        self.wakeup = thread.loop.makeWakeup()
        self.capacity = ByteSemaphore(available: limits.sendQueueBytes, maxAvailable: limits.sendQueueBytes)
        self.socketBox = SocketBox(socket)
        thread.loop.add(self, socketBox, wakeup)
    }

    deinit { thread.loop.remove(wakeup) }

    /// Sends a message once there is a connection.
    ///
    /// Waits, cancellably, while at least ``MessagingLimits/sendQueueBytes`` bytes are queued. Throws
    /// `user_cancelled`, `connection_lost` if the pusher is closed, and `limit_exceeded` if the message exceeds the
    /// limits.
    public nonisolated func push(_ frames: [Bytes]) async throws(RPCError) {
        if let violation = limits.violation(of: frames) { throw violation }
        let bytes = frames.reduce(0) { $0 + $1.count }
        switch await capacity.acquire(bytes) {
        case .acquired: break
        case .cancelled: throw .cancelled("the waiting task was cancelled")
        case .closed, .refused: throw .connectionLost("the pusher is closed")
        }
        let message = OutgoingMessage(frames, reservation: ByteReservation(bytes: bytes, semaphores: [capacity]))
        let isAccepted = arriving.withLock { $0?.append(message) } != nil
        guard isAccepted else { throw .connectionLost("the pusher is closed") }
        wakeup.signal()
    }

    /// Returns the counters, by name.
    public func metrics() -> JSONObject {
        ["sent": JSON(sent), "outboxBytes": JSON(limits.sendQueueBytes - capacity.available)]
    }

    /// Closes the connection. Messages that libzmq has accepted are sent within the linger time; the others are lost.
    public func close() async { closeNow() }

    func closeNow() {
        guard socketBox.socket != nil else { return }
        queueArriving()
        _ = flush()
        thread.loop.remove(wakeup)
        arriving.withLock { $0 = nil }
        capacity.close()
        socketBox.close()
        queue = []
    }

    private func queueArriving() {
        let batch = arriving.withLock { batch in
            defer { if batch != nil { batch = [] } }
            return batch ?? []
        }
        queue.append(contentsOf: batch)
    }

    /// Passes the queued messages to libzmq.
    ///
    /// - Returns: true if its queue is full
    private func flush() -> Bool {
        while let message = queue.first {
            if socketBox.socket?.socket.send(message) == .full { return true }
            queue.removeFirst()
            sent += 1
        }
        return false
    }

    func poll(hasEvents: Bool) -> PollInterest {
        guard socketBox.socket != nil else { return PollInterest(wantsInput: false) }
        for event in hasEvents ? socketBox.socket?.events() ?? [] : [] {
            switch event {
            case .ready: connection.set(isReady: true)
            case .closed: connection.set(isReady: false)
            case .opened, .refused: continue
            }
        }
        queueArriving()
        return PollInterest(wantsOutput: flush())
    }
}
