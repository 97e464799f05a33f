import CZeroMQ
public import JSONValue
public import Logging
import Synchronization

/// Tells many subscribers at once: XPUB. Lossy by design; whoever needs every message detects gaps and reads again.
///
/// A reader whose queue is full is waited for a moment, as ``Patience`` says; then it loses what does not fit.
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
    /// Hears of keys that were taken off the list, over CURVE.
    private let listening: Doorkeeper.Listening?
    /// Not listening for the moment, after everyone was disconnected.
    private var isAway = false
    private let holder: SocketHolder<Socket>
    /// Messages taken from the queue, and how many of them have left.
    private var leaving: [OutgoingMessage] = []
    private var left = 0
    private var patience: Patience
    private var counts = (sent: 0, bytes: 0, subscriptions: 0, strange: 0, failed: 0, restarts: 0)

    /// The address with the port that was found, where the given one left it open.
    public nonisolated let boundAddress: EndpointAddress

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Binds; from then on subscribers are served.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none,
        logger: Logger
    ) throws(MessagingError) {
        let socket = try Socket(ZMQ_XPUB, context: thread.context)
        // Subscriptions are messages under the receive mark: it holds twice what one subscriber may have.
        let receive = Int32(clamping: 2 * limits.topicsPerSubscriber + 1000)
        try socket.configure(limits, send: limits.publishHighWaterMark, receive: receive, linger: .zero)
        try socket.set(ZMQ_XPUB_VERBOSE, 1 as Int32)
        // Full queues are told; what is done about them is decided here.
        try socket.set(ZMQ_XPUB_NODROP, 1 as Int32)
        self.boundAddress = try socket.bind(address, security: security)
        self.thread = thread
        self.limits = limits
        self.patience = Patience(shortest: limits.publishPatience)
        self.logger = logger
        self.doorbell = thread.loop.makeDoorbell()
        let queue = PublishQueue(maxBytes: limits.outboxBytes, doorbell: doorbell)
        self.queue = queue
        self.listening = security.domain.map { domain in
            thread.context.doorkeeper.listen(to: domain) { _ in queue.askForRestart() }
        }
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

    /// Waits while much is on its way to the subscribers: for those whose records can wait, so that nobody who reads loses
    /// any of them.
    public nonisolated func waitForRoom() async { await queue.waitForRoom() }

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
            "sentWithoutSome": JSON(patience.lost),
            "restarts": JSON(counts.restarts),
        ]
    }

    /// Stops listening; what was not sent is lost.
    public func close() async { closeNow() }

    private func closeNow() {
        guard holder.socket != nil else { return }
        thread.loop.remove(doorbell)
        holder.close()
        queue.close()
    }

    private func turn() -> Turn {
        guard holder.socket != nil else { return Turn(wantsInput: false) }
        if queue.takeRestart() { disconnectAll() }
        if isAway { isAway = holder.socket?.rebind(boundAddress) != true }
        let isWaiting = !sendLeaving()
        var wakeAfter = isAway ? Self.rebindPause : nil
        if isWaiting { wakeAfter = Self.fullPause }
        return Turn(isHungry: readSubscriptions(), wakeAfter: wakeAfter)
    }

    /// Sends what there is.
    ///
    /// - Returns: false where it waits for somebody's queue
    private func sendLeaving() -> Bool {
        var bytes = 0
        defer { queue.settle(bytes) }
        while true {
            if left == leaving.count {
                (leaving, left) = (queue.drain(), 0)
                if leaving.isEmpty { return true }
            }
            let message = leaving[left]
            switch holder.socket?.send(message) {
            case .sent:
                patience.moved()
                note(message, isSent: true)
            case .full:
                let now = MonotonicClock.system.nowMicroseconds()
                if patience.waits(at: now, subscriptions: counts.subscriptions) { return false }
                note(message, isSent: sendToThoseWithRoom(message))
            default: note(message, isSent: false)
            }
            bytes += message.byteCount
            left += 1
        }
    }

    private func note(_ message: OutgoingMessage, isSent: Bool) {
        guard isSent else {
            counts.failed += 1
            return
        }
        counts.sent += 1
        counts.bytes += message.byteCount
    }

    /// Those without lose it, and everything until they have read half of what they have; they are waited for no more.
    private func sendToThoseWithRoom(_ message: OutgoingMessage) -> Bool {
        guard (try? holder.socket?.set(ZMQ_XPUB_NODROP, 0 as Int32)) != nil else { return false }
        defer { try? holder.socket?.set(ZMQ_XPUB_NODROP, 1 as Int32) }
        return holder.socket?.send(message) == .sent
    }

    /// How long a full queue is left alone.
    private static let fullPause: Int64 = 1000
    private static let rebindPause: Int64 = 2000

    /// Ends every connection and listens again: libzmq 4.3.4 can disconnect no single peer. All of them come back by
    /// themselves within their reconnect interval, except those whose key is off the list; what is published meanwhile
    /// they find as a gap.
    private func disconnectAll() {
        guard !isAway, holder.socket?.unbind(boundAddress) == true else { return }
        counts.restarts += 1
        isAway = true
        logger.notice(
            "the publisher disconnects everyone: a key was taken off its list",
            metadata: ["address": "\(boundAddress)"]
        )
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

/// Messages on their way to libzmq, bounded by bytes.
private final class PublishQueue: Sendable {
    private struct State {
        var messages: [OutgoingMessage] = []
        /// Of these, and of those that were taken out and have not left.
        var bytes = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isClosed = false
        var dropped = 0
        var refused = 0
        var wantsRestart = false
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

    /// Asks the publisher to disconnect everyone.
    func askForRestart() {
        state.withLock { $0.wantsRestart = true }
        doorbell.ring()
    }

    func takeRestart() -> Bool {
        state.withLock { state in
            defer { state.wantsRestart = false }
            return state.wantsRestart
        }
    }

    func refuse() { state.withLock { $0.refused += 1 } }

    func drain() -> [OutgoingMessage] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Bytes that may be on their way before those wait who can.
    private static let comfortable = 4 << 20

    func waitForRoom() async {
        guard state.withLock({ $0.bytes > Self.comfortable && !$0.isClosed }) else { return }
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.bytes > Self.comfortable, !state.isClosed {
                    state.waiting.append(continuation)
                    return false
                }
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    /// So many bytes have left.
    func settle(_ bytes: Int) {
        let freed: [CheckedContinuation<Void, Never>] = state.withLock { state in
            state.bytes -= bytes
            guard state.bytes <= Self.comfortable / 2 || state.isClosed else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in freed { continuation.resume() }
    }

    /// Nothing will leave any more: nobody waits for it.
    func close() {
        state.withLock { $0.isClosed = true }
        settle(0)
    }
}
