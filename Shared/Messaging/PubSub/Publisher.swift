public import Basics
import CZeroMQ
public import JSONValue
public import Logging
import Synchronization

/// Publishes messages to many subscribers: XPUB. Lossy by design; a subscriber that needs every message detects gaps
/// and reads the missing changes again.
///
/// The publisher waits briefly for a subscriber whose queue is full (see ``SlowSubscriberPolicy``); then that
/// subscriber loses messages.
public actor Publisher: SocketOwner {
    /// Called when a topic is subscribed to and when its last subscriber leaves.
    public typealias SubscriptionHook = @Sendable (_ topic: String, _ isSubscribed: Bool) -> Void

    /// The maximum length of a topic in bytes. libzmq 4.3.4 corrupts topics from 246 bytes on.
    public static let maxTopicBytes = 64

    /// A struct, because each access by a generic function would wrap the closure of a tuple once more (Swift 6.3).
    private struct Hook {
        var call: SubscriptionHook?
        var isNew = false
    }

    /// The attempts to bind again after all subscribers were disconnected; times in microseconds.
    private struct Rebinding {
        let start: Int64
        var next: Int64
        var isReported = false
    }

    private let thread: PollThread
    private let limits: MessagingLimits
    private let logger: Logger
    private let wakeup: PollWakeup
    private nonisolated let queue: PublishQueue
    private nonisolated let hook = Mutex(Hook())
    /// The registration for keys removed from the list; nil without CURVE.
    private let revocations: ZAPAuthenticator.RevocationSubscription?
    /// Nil while the socket is bound.
    private var rebinding: Rebinding?
    private let socketBox: SocketBox<MonitoredSocket>
    private var subscriptions = SubscriptionTable()
    private let peers: PeerTable
    private var excesses = LogThrottle()
    /// Messages removed from the queue.
    private var outgoing: [OutgoingMessage] = []
    /// The number of messages of `outgoing` that were sent.
    private var sentCount = 0
    private var slowSubscriberPolicy: SlowSubscriberPolicy
    private var counts = (sent: 0, bytes: 0, unrecognized: 0, failed: 0, restarts: 0, ended: 0)

    /// The bound address, with the actual port if the given one left it open.
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
        // Reports every subscription and every unsubscription, not only the first and the last of a topic.
        try plain.set(ZMQ_XPUB_VERBOSER, 1 as Int32)
        // Makes `send` report full queues with EAGAIN, so that ``SlowSubscriberPolicy`` decides about them.
        try plain.set(ZMQ_XPUB_NODROP, 1 as Int32)
        let socket = try MonitoredSocket(plain, context: thread.context)
        self.boundAddress = try socket.socket.bind(address, security: security)
        self.peers = PeerTable(thread.context, boundAddress, security, maxPerKey: limits.connectionsPerKey)
        self.thread = thread
        self.limits = limits
        self.slowSubscriberPolicy = SlowSubscriberPolicy(minimumWait: limits.publishWait)
        self.logger = logger
        self.wakeup = thread.loop.makeWakeup()
        let queue = PublishQueue(maxBytes: limits.outboxBytes, wakeup: wakeup)
        self.queue = queue
        self.revocations = security.domain.map { domain in
            thread.context.authenticator.addRevocationHook(for: domain) { _ in queue.requestRestart() }
        }
        self.socketBox = SocketBox(socket)
        thread.loop.add(self, socketBox, wakeup)
    }

    deinit { thread.loop.remove(wakeup) }

    /// Publishes a message to all subscribers of the topic.
    ///
    /// Never waits: a message that exceeds the queue's capacity is dropped and counted.
    ///
    /// - Parameters:
    ///   - topic: at most ``maxTopicBytes`` bytes; a message with a longer one is dropped and counted.
    ///   - frames: the frames after the topic.
    public nonisolated func publish(_ topic: String, _ frames: [Bytes]) {
        let name = Bytes(topic.utf8)
        let message = OutgoingMessage([name] + frames)
        guard name.count <= Self.maxTopicBytes, limits.violation(of: [name] + frames) == nil else {
            queue.countRefusal()
            return
        }
        queue.enqueue(message)
    }

    /// Waits while many bytes are queued for the subscribers. Used by publishers whose messages can wait, so that no
    /// subscriber that reads loses any of them.
    public nonisolated func waitForCapacity() async { await queue.waitForCapacity() }

    /// Sets the hook that is called on the poll thread for each subscription and unsubscription; it must not block.
    ///
    /// It is called first for the topics that are subscribed to already: subscribers that reconnect to a restarted
    /// publisher can be faster than this call. It is called again if another subscriber subscribes to the same topic,
    /// and with `false` when the last one has left.
    public nonisolated func setOnSubscribe(_ hook: @escaping SubscriptionHook) {
        self.hook.withLock { $0 = Hook(call: hook, isNew: true) }
        wakeup.signal()
    }

    /// Returns the counters, by name.
    public func metrics() -> JSONObject {
        let (waiting, dropped, refused) = queue.metrics
        return [
            "published": JSON(counts.sent), "bytesOut": JSON(counts.bytes), "outboxBytes": JSON(waiting),
            "dropped": JSON(dropped), "refused": JSON(refused), "subscriptions": JSON(subscriptions.total),
            "connections": JSON(subscriptions.connectionCount), "connectionsEnded": JSON(counts.ended),
            "maxTopics": JSON(limits.topics), "maxTopicsPerConnection": JSON(limits.topicsPerSubscriber),
            "strangeMessages": JSON(counts.unrecognized), "sendFailures": JSON(counts.failed),
            "sentWithoutSome": JSON(slowSubscriberPolicy.skippedCount),
            "restarts": JSON(counts.restarts), "isBound": .bool(rebinding == nil),
        ]
    }

    /// Unbinds and closes the socket; messages that were not sent are lost.
    public func close() async { closeNow() }

    func closeNow() {
        guard socketBox.socket != nil else { return }
        thread.loop.remove(wakeup)
        socketBox.close()
        peers.removeAll()
        queue.close()
    }

    /// Runs one pass of the poll loop, in this order: a new hook, a restart, the attempt to bind again, the events of
    /// connections, the messages to send, subscriptions, and connections that have to end.
    func poll(hasEvents: Bool) -> PollInterest {
        guard socketBox.socket != nil else { return PollInterest(wantsInput: false) }
        callNewHook()
        if queue.consumeRestart() { disconnectAll() }
        bindAgain()
        if hasEvents { readEvents() }
        let isWaiting = !flushOutgoing()
        let hasMoreWork = readSubscriptions()
        let now = MonotonicClock.system.nowMicroseconds()
        for peer in peers.silent(at: now) { end(peer, "it has no topics, and few connections are left for others") }
        for peer in peers.endless(at: now, above: limits.maxMessageBytes) { end(peer, "a message without an end") }
        var wakeAt = min(rebinding?.next ?? .max, peers.nextCheck, peers.nextEndlessMessageCheck)
        if isWaiting { wakeAt = now.addingClamped(Self.fullPause) }
        return PollInterest(hasMoreWork: hasMoreWork, wakeAfter: wakeAt == .max ? nil : wakeAt.addingClamped(-now))
    }

    /// Sends the queued messages.
    ///
    /// - Returns: false if it waits for a full queue
    private func flushOutgoing() -> Bool {
        var bytes = 0
        defer { queue.didSend(bytes) }
        while true {
            if sentCount == outgoing.count {
                (outgoing, sentCount) = (queue.removeAll(), 0)
                if outgoing.isEmpty { return true }
            }
            let message = outgoing[sentCount]
            switch socketBox.socket?.socket.send(message) {
            case .sent:
                slowSubscriberPolicy.didSend()
                note(message, isSent: true)
            case .full:
                let now = MonotonicClock.system.nowMicroseconds()
                if slowSubscriberPolicy.decideWait(at: now, subscriptions: subscriptions.total) { return false }
                note(message, isSent: sendToReadySubscribers(message))
            default: note(message, isSent: false)
            }
            bytes += message.byteCount
            sentCount += 1
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

    /// Sends to the subscribers that have space. The others lose this message and all further ones until they have read
    /// half of their queue; the publisher does not wait for them meanwhile.
    private func sendToReadySubscribers(_ message: OutgoingMessage) -> Bool {
        // A subscriber that has read much may still seem full, because libzmq has not handled its report yet.
        socketBox.socket?.socket.handleCommands()
        guard (try? socketBox.socket?.socket.set(ZMQ_XPUB_NODROP, 0 as Int32)) != nil else { return false }
        defer { try? socketBox.socket?.socket.set(ZMQ_XPUB_NODROP, 1 as Int32) }
        return socketBox.socket?.socket.send(message) == .sent
    }

    /// Pause in microseconds before a full queue is tried again.
    private static let fullPause: Int64 = 1000
    /// Pause in microseconds before the next attempt to bind again, in the first second and afterwards.
    private static let rebindPauses: (short: Int64, long: Int64) = (2000, 1_000_000)

    /// Disconnects all subscribers and binds again, because libzmq 4.3.4 cannot disconnect a single peer. All of them
    /// reconnect on their own within their reconnect interval, except those whose key was removed from the list;
    /// messages published meanwhile appear to them as a gap.
    private func disconnectAll() {
        guard rebinding == nil, socketBox.socket?.socket.unbind(boundAddress) == true else { return }
        // libzmq reports no end of connections that it closes by itself.
        readEvents()
        reportUnsubscribed(subscriptions.closeAll())
        peers.removeAll()
        counts.restarts += 1
        let now = MonotonicClock.system.nowMicroseconds()
        rebinding = Rebinding(start: now, next: now)
        logger.notice(
            "all subscribers disconnected: a key was removed from the list; those still on it reconnect on their own",
            metadata: ["address": "\(boundAddress)"]
        )
    }

    /// Binds again if an attempt is due. libzmq holds the port for some milliseconds. Binding fails for longer if the
    /// machine has lost the address, or if another process has taken the port.
    private func bindAgain() {
        let now = MonotonicClock.system.nowMicroseconds()
        guard var attempts = rebinding, attempts.next <= now else { return }
        if socketBox.socket?.socket.rebind(boundAddress) == true {
            rebinding = nil
            if attempts.isReported { logger.notice("bound again", metadata: ["address": "\(boundAddress)"]) }
            return
        }
        let reason = Socket.lastErrorText
        let isShort = now - attempts.start < Self.rebindPauses.long
        attempts.next = now + (isShort ? Self.rebindPauses.short : Self.rebindPauses.long)
        if !isShort, !attempts.isReported {
            attempts.isReported = true
            logger.warning(
                "cannot bind again, tried once a second: restore the machine's address, or free the port",
                metadata: ["address": "\(boundAddress)", "reason": "\(reason)"]
            )
        }
        rebinding = attempts
    }

    // MARK: Subscriptions

    /// Calls a hook that was set since the last pass for all topics with a subscriber.
    private func callNewHook() {
        let new = hook.withLock { hook in
            defer { hook.isNew = false }
            return hook.isNew ? hook.call : nil
        }
        guard let new else { return }
        for topic in subscriptions.topics { if let name = String(validating: topic, as: UTF8.self) { new(name, true) } }
    }

    private func readEvents() {
        for event in socketBox.socket?.events() ?? [] {
            switch event {
            case .opened(let descriptor):
                subscriptions.open(descriptor)
                peers.opened(descriptor, at: MonotonicClock.system.nowMicroseconds())
            case .closed(let descriptor):
                reportUnsubscribed(subscriptions.close(descriptor))
                peers.closed(descriptor)
            case .ready, .refused: break
            }
        }
    }

    /// Reads subscriptions in every pass: an XPUB that is not read queues what peers send without a limit.
    private func readSubscriptions() -> Bool {
        for _ in 0..<limits.receiveBudget {
            guard
                let message = socketBox.socket?.socket.receive(
                    maxFrames: 1,
                    maxBytes: limits.subscriberMessageBytes,
                    wantsPeer: true
                )
            else { return false }
            // libzmq reports that a connection has ended, and that a new one has its descriptor, before it delivers a
            // message of the new one. Reading these events here keeps topics from being attributed to the old one.
            readEvents()
            if let descriptor = message.descriptor, !peers.identify(descriptor, as: message.curveIdentity) {
                end(descriptor, "its key has too many connections")
                continue
            }
            if let descriptor = message.descriptor { peers.delivered(descriptor) }
            guard message.violation == nil, let frame = message.frames.first, let kind = frame.first, kind <= 1 else {
                counts.unrecognized += 1
                continue
            }
            let topic = Bytes(frame.dropFirst())
            if kind == 1 {
                subscribe(topic, message.descriptor, message.curveIdentity?.key)
            } else {
                unsubscribe(topic, message.descriptor)
            }
        }
        return true
    }

    private func subscribe(_ topic: Bytes, _ descriptor: Int32?, _ key: String?) {
        var outcome = subscriptions.add(topic, of: descriptor, key: key)
        if outcome == .unknownConnection {
            readEvents()
            outcome = subscriptions.add(topic, of: descriptor, key: key)
        }
        guard outcome == .added else { return }
        if let name = String(validating: topic, as: UTF8.self) {
            hook.withLock { $0.call }?(name, true)
        } else {
            counts.unrecognized += 1
        }
        if let descriptor {
            if topic.count > Self.maxTopicBytes {
                end(descriptor, "a topic of more than \(Self.maxTopicBytes) bytes")
            } else if subscriptions.count(of: descriptor) > limits.topicsPerSubscriber {
                end(descriptor, "more than \(limits.topicsPerSubscriber) topics")
            }
        }
        if subscriptions.total > limits.topics, let largest = subscriptions.largest {
            end(largest, "it has the most topics, and all subscribers together more than \(limits.topics)")
        }
    }

    private func unsubscribe(_ topic: Bytes, _ descriptor: Int32?) {
        // libzmq reports the topics of a closed connection without a descriptor; the monitor has already reported them.
        guard descriptor != nil || boundAddress.transport == .inproc else { return }
        if subscriptions.remove(topic, of: descriptor) { reportUnsubscribed([topic]) }
    }

    /// Calls the hook for topics that have no subscribers any more.
    private func reportUnsubscribed(_ topics: [Bytes]) {
        guard !topics.isEmpty, let hook = hook.withLock({ $0.call }) else { return }
        for topic in topics { if let name = String(validating: topic, as: UTF8.self) { hook(name, false) } }
    }

    private func end(_ descriptor: Int32, _ reason: String) {
        if let peer = peers[descriptor] { end(peer, reason) }
    }

    /// Ends the connection of a subscriber.
    ///
    /// The hook is called for its topics first: after the end of a connection with unread input, libzmq 4.3.4 ends the
    /// process if the thread does not read within the heartbeat interval.
    private func end(_ peer: PeerTable.Peer, _ reason: String) {
        let isEnded = peers.end(peer) {
            readEvents()
            if peers.isOpen(peer) { reportUnsubscribed(subscriptions.markEnding(peer.descriptor)) }
        }
        guard isEnded else { return }
        counts.ended += 1
        guard let count = excesses.count(at: MonotonicClock.system.nowMicroseconds()) else { return }
        logger.warning(
            "subscriber disconnected: it exceeds a limit",
            metadata: ["address": "\(boundAddress)", "reason": "\(reason)", "disconnected": "\(count)"]
        )
    }
}

// MARK: - Slow subscribers

/// The policy of a publisher for subscribers whose queue is full: how long it waits for them before it sends without
/// them.
///
/// libzmq reports that *some* queue is full, not whose. A subscriber that keeps up but was briefly not scheduled has
/// space again soon and should lose nothing; one that has stopped reading should not delay the others. So the publisher
/// waits briefly; if that does not help, it does not wait at all for a hundred times as long.
struct SlowSubscriberPolicy {
    /// The minimum of the longest wait.
    let minimumWait: Duration
    /// When the current wait began, and the earliest start of the next, in microseconds.
    private var began: Int64?
    private var noWaitUntil = Int64.min
    /// The number of messages that at least one subscriber did not get.
    private(set) var skippedCount = 0

    init(minimumWait: Duration) { self.minimumWait = minimumWait }

    /// Returns the longest wait in microseconds for a number of subscriptions, each of which takes CPU time.
    func maxWait(subscriptions: Int) -> Int64 {
        minimumWait.microseconds.addingClamped(500 * Int64(min(max(subscriptions, 0), 360)))
    }

    /// Decides about a message that found a full queue.
    ///
    /// - Returns: whether to wait; otherwise the message is sent to those subscribers that have space
    mutating func decideWait(at now: Int64, subscriptions: Int) -> Bool {
        guard now >= noWaitUntil else {
            skippedCount += 1
            return false
        }
        let start = began ?? now
        began = start
        let maxWait = maxWait(subscriptions: subscriptions)
        guard now - start > maxWait else { return true }
        began = nil
        noWaitUntil = now.addingClamped(maxWait * 100)
        skippedCount += 1
        return false
    }

    /// Ends the current wait: a message was sent to all subscribers.
    mutating func didSend() { began = nil }
}
