import CZeroMQ
public import JSONValue
public import Logging
import Synchronization

/// Tells many subscribers at once: XPUB. Lossy by design; whoever needs every message detects gaps and reads again.
public actor Publisher {
    /// What subscribers ask for, as the publisher sees it.
    public typealias SubscriptionHook = @Sendable (_ topic: String, _ isSubscribed: Bool) -> Void

    /// The longest topic in bytes: from 246 on, 4.3.4 corrupts them.
    public static let longestTopic = 64

    private let thread: PollThread
    private let limits: MessagingLimits
    private let logger: Logger
    private let doorbell: Doorbell
    private nonisolated let queue: PublishQueue
    private nonisolated let hook = Mutex<SubscriptionHook?>(nil)
    private let holder: SocketHolder<Socket>
    private var counts = (sent: 0, bytes: 0, subscriptions: 0, strange: 0, failed: 0)

    /// The address with the port that was found, where the given one left it open.
    public nonisolated let boundAddress: EndpointAddress

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Binds; from then on subscribers are served.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        logger: Logger
    ) throws(MessagingError) {
        let socket = try Socket(ZMQ_XPUB, context: thread.context)
        // Subscriptions are messages under the receive mark: it holds twice what one subscriber may have.
        let receive = Int32(clamping: 2 * limits.topicsPerSubscriber + 1000)
        try socket.configure(limits, send: limits.publishHighWaterMark, receive: receive, linger: .zero)
        try socket.set(ZMQ_XPUB_VERBOSE, 1 as Int32)
        self.boundAddress = try socket.bind(address)
        self.thread = thread
        self.limits = limits
        self.logger = logger
        self.doorbell = thread.loop.makeDoorbell()
        self.queue = PublishQueue(maxBytes: limits.outboxBytes, doorbell: doorbell)
        let handle = SocketHandle(socket)
        self.holder = SocketHolder(socket)
        let holder = holder
        thread.loop.add(
            PollClient(
                doorbell: doorbell,
                socket: handle,
                monitor: nil,
                turn: { [weak self] in self.map { publisher in publisher.assumeIsolated { $0.turn() } } },
                close: { [weak self] in self?.assumeIsolated { $0.closeNow() } },
                dispose: { holder.close() }
            )
        )
    }

    deinit { thread.loop.remove(doorbell) }

    /// Sends a message to all who subscribed to the topic.
    ///
    /// Never waits: what does not fit is counted and dropped.
    ///
    /// - Parameters:
    ///   - topic: at most ``longestTopic`` bytes; a longer one is counted and dropped.
    ///   - frames: the frames after the topic.
    public nonisolated func publish(_ topic: String, _ frames: [Bytes]) {
        let name = Bytes(topic.utf8)
        let message = OutgoingMessage([name] + frames)
        guard name.count <= Self.longestTopic, limits.violation(of: [name] + frames) == nil else {
            queue.refuse()
            return
        }
        queue.put(message)
    }

    /// Called on the poll thread with each subscription and its end; it must not wait.
    ///
    /// A topic is told again when somebody else subscribes to it.
    public nonisolated var onSubscribe: SubscriptionHook? {
        get { hook.withLock { $0 } }
        set { hook.withLock { $0 = newValue } }
    }

    /// Sets ``onSubscribe``; for publishers that are kept in a `let`.
    public nonisolated func setOnSubscribe(_ hook: @escaping SubscriptionHook) {
        self.hook.withLock { $0 = hook }
    }

    /// What happened so far, by name.
    public func figures() -> JSONObject {
        let (waiting, dropped, refused) = queue.figures
        return [
            "published": JSON(counts.sent), "bytesOut": JSON(counts.bytes), "outboxBytes": JSON(waiting),
            "dropped": JSON(dropped), "refused": JSON(refused), "subscriptions": JSON(counts.subscriptions),
            "strangeMessages": JSON(counts.strange), "sendFailures": JSON(counts.failed),
        ]
    }

    /// Stops listening; what was not sent is lost.
    public func close() async { closeNow() }

    private func closeNow() {
        guard holder.socket != nil else { return }
        thread.loop.remove(doorbell)
        holder.close()
    }

    private func turn() -> Turn {
        guard holder.socket != nil else { return Turn(wantsInput: false) }
        for message in queue.drain() {
            // An XPUB without NODROP never says that it is full: it drops for the slow ones alone.
            if holder.socket?.send(message) == .sent {
                counts.sent += 1
                counts.bytes += message.byteCount
            } else {
                counts.failed += 1
            }
        }
        return Turn(isHungry: readSubscriptions())
    }

    /// Always read: an XPUB that is not drained queues what peers send without a limit.
    private func readSubscriptions() -> Bool {
        for _ in 0..<limits.receiveBudget {
            guard let message = holder.socket?.receive(maxFrames: 1, maxBytes: 1 + 255) else { return false }
            guard message.violation == nil, let frame = message.frames.first, let kind = frame.first, kind <= 1,
                let topic = String(validating: frame.dropFirst(), as: UTF8.self)
            else {
                counts.strange += 1
                continue
            }
            counts.subscriptions += kind == 1 ? 1 : -1
            hook.withLock { $0 }?(topic, kind == 1)
        }
        return true
    }
}

/// Messages on their way to the poll thread, bounded by bytes.
private final class PublishQueue: Sendable {
    private struct State {
        var messages: [OutgoingMessage] = []
        var bytes = 0
        var dropped = 0
        var refused = 0
    }

    private let state = Mutex(State())
    private let maxBytes: Int
    private let doorbell: Doorbell

    init(maxBytes: Int, doorbell: Doorbell) {
        self.maxBytes = maxBytes
        self.doorbell = doorbell
    }

    var figures: (waiting: Int, dropped: Int, refused: Int) {
        state.withLock { ($0.bytes, $0.dropped, $0.refused) }
    }

    func put(_ message: OutgoingMessage) {
        let bytes = message.byteCount
        let isTaken = state.withLock { state in
            guard state.bytes.addingClamped(bytes) <= maxBytes else {
                state.dropped += 1
                return false
            }
            state.messages.append(message)
            state.bytes += bytes
            return true
        }
        if isTaken { doorbell.ring() }
    }

    func refuse() { state.withLock { $0.refused += 1 } }

    func drain() -> [OutgoingMessage] {
        state.withLock { state in
            defer {
                state.messages = []
                state.bytes = 0
            }
            return state.messages
        }
    }
}
