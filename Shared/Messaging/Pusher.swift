import CZeroMQ
import DequeModule
public import JSONValue
import Synchronization

/// Pushes messages to a ``Puller``: PUSH. There is no acknowledgement: a sender that needs delivery repeats a message
/// until it sees its effect.
public actor Pusher: SocketOwner {
    private let thread: PollThread
    private let limits: MessagingLimits
    private let doorbell: Doorbell
    private nonisolated let room: ByteGate
    private nonisolated let arriving = Mutex<[OutgoingMessage]?>([])
    private var queue: Deque<OutgoingMessage> = []
    private let holder: SocketHolder<Socket>
    private var sent = 0

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Begins to connect; an absent puller is not an error.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none
    ) throws(MessagingError) {
        let socket = try Socket(ZMQ_PUSH, context: thread.context)
        try socket.configure(
            limits,
            send: limits.sendHighWaterMark,
            receive: 1,
            linger: limits.linger,
            hasHeartbeat: false
        )
        try socket.set(ZMQ_IMMEDIATE, 1 as Int32)
        try socket.connect(address, security: security)
        self.thread = thread
        self.limits = limits
        self.doorbell = thread.loop.makeDoorbell()
        self.room = ByteGate(available: limits.outboxBytesPerConnection, ceiling: limits.outboxBytesPerConnection)
        self.holder = SocketHolder(socket)
        thread.loop.add(self, holder, doorbell)
    }

    deinit { thread.loop.remove(doorbell) }

    /// Sends a message once there is a connection.
    ///
    /// Waits, cancellably, while more than ``MessagingLimits/outboxBytesPerConnection`` bytes are queued. Throws
    /// `user_cancelled`, `connection_lost` if the pusher is closed, and `limit_exceeded` if the message exceeds the
    /// limits.
    public nonisolated func push(_ frames: [Bytes]) async throws(RPCError) {
        if let violation = limits.violation(of: frames) { throw violation }
        let bytes = frames.reduce(0) { $0 + $1.count }
        switch await room.take(bytes) {
        case .taken: break
        case .cancelled: throw .cancelled("the waiting task was cancelled")
        case .closed, .refused: throw .connectionLost("the pusher is closed")
        }
        let message = OutgoingMessage(frames, charge: Charge(bytes: bytes, gates: [room]))
        let isTaken = arriving.withLock { $0?.append(message) } != nil
        guard isTaken else { throw .connectionLost("the pusher is closed") }
        doorbell.ring()
    }

    /// Returns the counters, by name.
    public func figures() -> JSONObject {
        ["sent": JSON(sent), "outboxBytes": JSON(limits.outboxBytesPerConnection - room.available)]
    }

    /// Closes the connection. Messages that libzmq has accepted are sent within the linger time; the others are lost.
    public func close() async { closeNow() }

    func closeNow() {
        guard holder.socket != nil else { return }
        takeArriving()
        _ = flush()
        thread.loop.remove(doorbell)
        arriving.withLock { $0 = nil }
        room.close()
        holder.close()
        queue = []
    }

    private func takeArriving() {
        let batch = arriving.withLock { batch in
            defer { if batch != nil { batch = [] } }
            return batch ?? []
        }
        queue.append(contentsOf: batch)
    }

    /// - Returns: whether libzmq's queue is full.
    private func flush() -> Bool {
        while let message = queue.first {
            if holder.socket?.send(message) == .full { return true }
            queue.removeFirst()
            sent += 1
        }
        return false
    }

    func turn() -> Turn {
        guard holder.socket != nil else { return Turn(wantsInput: false) }
        takeArriving()
        return Turn(wantsOutput: flush())
    }
}
