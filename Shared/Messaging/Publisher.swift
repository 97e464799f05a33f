import CZeroMQ
import Glibc
public import JSONValue
public import Logging
import Synchronization

/// Tells many subscribers at once: XPUB. Lossy by design; whoever needs every message detects gaps and reads again.
///
/// A reader whose queue is full is waited for a moment, as ``Patience`` says; then it loses what does not fit.
public actor Publisher: SocketOwner {
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
    private let holder: SocketHolder<MonitoredSocket>
    private var subscriptions = SubscriptionTable()
    private var excesses = RefusalLog()
    /// Messages taken from the queue, and how many of them have left.
    private var leaving: [OutgoingMessage] = []
    private var left = 0
    private var patience: Patience
    private var counts = (sent: 0, bytes: 0, strange: 0, failed: 0, restarts: 0, ended: 0)

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
        let plain = try Socket(ZMQ_XPUB, context: thread.context)
        try plain.configure(
            limits,
            send: limits.publishHighWaterMark,
            receive: limits.subscriptionHighWaterMark,
            linger: .zero
        )
        try plain.set(ZMQ_MAXMSGSIZE, Int64(limits.subscriberMessageBytes))
        // Every subscription and every end of one is reported, not only the first and the last of a topic.
        try plain.set(ZMQ_XPUB_VERBOSER, 1 as Int32)
        // Full queues are told; what is done about them is decided here.
        try plain.set(ZMQ_XPUB_NODROP, 1 as Int32)
        let socket = try MonitoredSocket(plain, context: thread.context)
        self.boundAddress = try socket.socket.bind(address, security: security)
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
        self.holder = SocketHolder(socket)
        thread.loop.add(self, holder, doorbell)
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

    /// Has the hook called on the poll thread with each subscription and its end; it must not wait.
    ///
    /// It is called again when another reader subscribes to a topic, and with `false` when the last one has left it.
    public nonisolated func setOnSubscribe(_ hook: @escaping SubscriptionHook) {
        self.hook.withLock { $0 = hook }
    }

    /// What happened so far, by name.
    public func figures() -> JSONObject {
        let (waiting, dropped, refused) = queue.figures
        return [
            "published": JSON(counts.sent), "bytesOut": JSON(counts.bytes), "outboxBytes": JSON(waiting),
            "dropped": JSON(dropped), "refused": JSON(refused), "subscriptions": JSON(subscriptions.total),
            "connections": JSON(subscriptions.connectionCount), "connectionsEnded": JSON(counts.ended),
            "maxTopics": JSON(limits.topics), "maxTopicsPerConnection": JSON(limits.topicsPerSubscriber),
            "strangeMessages": JSON(counts.strange), "sendFailures": JSON(counts.failed),
            "sentWithoutSome": JSON(patience.lost),
            "restarts": JSON(counts.restarts),
        ]
    }

    /// Stops listening; what was not sent is lost.
    public func close() async { closeNow() }

    func closeNow() {
        guard holder.socket != nil else { return }
        thread.loop.remove(doorbell)
        holder.close()
        queue.close()
    }

    func turn() -> Turn {
        guard holder.socket != nil else { return Turn(wantsInput: false) }
        if queue.takeRestart() { disconnectAll() }
        if isAway { isAway = holder.socket?.socket.rebind(boundAddress) != true }
        readEvents()
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
            switch holder.socket?.socket.send(message) {
            case .sent:
                patience.moved()
                note(message, isSent: true)
            case .full:
                let now = MonotonicClock.system.nowMicroseconds()
                if patience.waits(at: now, subscriptions: subscriptions.total) { return false }
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
        guard (try? holder.socket?.socket.set(ZMQ_XPUB_NODROP, 0 as Int32)) != nil else { return false }
        defer { try? holder.socket?.socket.set(ZMQ_XPUB_NODROP, 1 as Int32) }
        return holder.socket?.socket.send(message) == .sent
    }

    /// How long a full queue is left alone.
    private static let fullPause: Int64 = 1000
    private static let rebindPause: Int64 = 2000

    /// Ends every connection and listens again: libzmq 4.3.4 can disconnect no single peer. All of them come back by
    /// themselves within their reconnect interval, except those whose key is off the list; what is published meanwhile
    /// they find as a gap.
    private func disconnectAll() {
        guard !isAway, holder.socket?.socket.unbind(boundAddress) == true else { return }
        counts.restarts += 1
        isAway = true
        logger.notice(
            "the publisher disconnects everyone: a key was taken off its list",
            metadata: ["address": "\(boundAddress)"]
        )
    }

    // MARK: Subscriptions

    private func readEvents() {
        for event in holder.socket?.events() ?? [] {
            switch event {
            case .opened(let descriptor): subscriptions.open(descriptor)
            case .closed(let descriptor): drop(subscriptions.close(descriptor))
            case .ready, .refused: break
            }
        }
    }

    /// Always read: an XPUB that is not drained queues what peers send without a limit.
    private func readSubscriptions() -> Bool {
        for _ in 0..<limits.receiveBudget {
            guard
                let message = holder.socket?.socket.receive(
                    maxFrames: 1,
                    maxBytes: limits.subscriberMessageBytes,
                    wantsPeer: true
                )
            else { return false }
            guard message.violation == nil, let frame = message.frames.first, let kind = frame.first, kind <= 1 else {
                counts.strange += 1
                continue
            }
            let topic = Bytes(frame.dropFirst())
            if kind == 1 { subscribe(topic, message.descriptor) } else { unsubscribe(topic, message.descriptor) }
        }
        return true
    }

    private func subscribe(_ topic: Bytes, _ descriptor: Int32?) {
        var outcome = subscriptions.add(topic, of: descriptor)
        if outcome == .unknownConnection {
            readEvents()
            outcome = subscriptions.add(topic, of: descriptor)
        }
        guard outcome == .added else { return }
        if let name = String(validating: topic, as: UTF8.self) {
            hook.withLock { $0 }?(name, true)
        } else {
            counts.strange += 1
        }
        if let descriptor {
            if topic.count > Self.longestTopic {
                end(descriptor, "a topic of more than \(Self.longestTopic) bytes")
            } else if subscriptions.count(of: descriptor) > limits.topicsPerSubscriber {
                end(descriptor, "more than \(limits.topicsPerSubscriber) topics")
            }
        }
        if subscriptions.total > limits.topics, let largest = subscriptions.largest {
            end(largest, "the most of more than \(limits.topics) topics of all subscribers")
        }
    }

    private func unsubscribe(_ topic: Bytes, _ descriptor: Int32?) {
        // libzmq reports what a connection leaves behind without a descriptor: that is known from its end.
        guard descriptor != nil || boundAddress.transport == .inproc else { return }
        if subscriptions.remove(topic, of: descriptor) { drop([topic]) }
    }

    /// Nobody wants these any more.
    private func drop(_ topics: [Bytes]) {
        guard !topics.isEmpty, let hook = hook.withLock({ $0 }) else { return }
        for topic in topics { if let name = String(validating: topic, as: UTF8.self) { hook(name, false) } }
    }

    /// Ends a connection: libzmq 4.3.4 has no call for that, but sees an end of the stream like any other.
    ///
    /// The descriptor may be closed at any moment and given to another connection. libzmq reports the end before it
    /// closes the descriptor: if there is no report after the descriptor was duplicated, the duplicate is of this
    /// connection.
    private func end(_ descriptor: Int32, _ reason: String) {
        guard let serial = subscriptions.serial(of: descriptor) else { return }
        let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard duplicate >= 0 else { return }
        defer { Glibc.close(duplicate) }
        readEvents()
        guard subscriptions.serial(of: descriptor) == serial else { return }
        drop(subscriptions.markEnding(descriptor))
        Glibc.shutdown(duplicate, Int32(SHUT_RDWR))
        counts.ended += 1
        guard let count = excesses.count(at: MonotonicClock.system.nowMicroseconds()) else { return }
        logger.warning(
            "a subscriber is disconnected: it asked for too much",
            metadata: ["address": "\(boundAddress)", "why": "\(reason)", "disconnected": "\(count)"]
        )
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
