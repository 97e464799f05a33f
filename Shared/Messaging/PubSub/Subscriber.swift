public import Basics
import CZeroMQ
public import JSONValue
public import Logging

/// Receives messages from a publisher. It reconnects on its own. Messages that are published meanwhile are lost; the
/// reader detects that from the contents of the others.
public actor Subscriber: SocketOwner {
    /// An event of the connection.
    public enum Event: Sendable, Equatable {
        /// Connected to the publisher, for the first time or again; subscriptions are sent automatically.
        case connected
        /// The connection ended; the subscriber reconnects on its own.
        case disconnected
    }

    private let thread: PollThread
    private let limits: MessagingLimits
    private let logger: Logger
    private let wakeup: PollWakeup
    private nonisolated let inbox: Mailbox<Publication>
    private let eventSink: AsyncStream<Event>.Continuation
    private let socketBox: SocketBox<MonitoredSocket>
    private var topics: Set<String> = []
    private var counts = (
        received: 0, dropped: 0, unrecognized: 0, bytes: 0, connections: 0, disconnections: 0, refused: 0
    )
    /// True if CURVE is used: only then does a failed handshake mean a refused key.
    private let hasKeys: Bool
    private var refusals = LogThrottle()

    /// The address of the publisher.
    public nonisolated let address: EndpointAddress
    /// Connections and disconnections; the newest sixteen are buffered for a late reader.
    ///
    /// For one reader.
    public nonisolated let events: AsyncStream<Event>

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Begins to connect; an absent publisher is not an error.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none,
        logger: Logger
    ) throws(MessagingError) {
        let plain = try Socket(ZMQ_SUB, context: thread.context)
        // Subscriptions are messages that count towards the send high-water mark, and after a reconnection only half of
        // it is usable.
        let send = Int32(clamping: 2 * limits.topicsPerSubscriber + 1000)
        try plain.configure(limits, send: send, receive: limits.publishHighWaterMark, linger: .zero)
        let socket = try MonitoredSocket(plain, context: thread.context)
        try socket.socket.connect(address, security: security)
        self.address = address
        self.hasKeys = security.hasKeys
        self.thread = thread
        self.limits = limits
        self.logger = logger
        self.wakeup = thread.loop.makeWakeup()
        self.inbox = Mailbox(maxElements: limits.inboxMessages, maxBytes: limits.inboxBytes)
        (self.events, self.eventSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(16))
        self.socketBox = SocketBox(socket)
        thread.loop.add(self, socketBox, wakeup)
    }

    deinit {
        thread.loop.remove(wakeup)
        inbox.finish()
        eventSink.finish()
    }

    /// Subscribes to further topics.
    ///
    /// They are compared for equality, though libzmq compares prefixes; the empty topic matches every message. Topics
    /// that are too long, or beyond ``MessagingLimits/topicsPerSubscriber``, are left out and returned.
    @discardableResult
    public func subscribe(_ topics: [String]) async -> [String] {
        var leftOut: [String] = []
        for topic in topics where !self.topics.contains(topic) {
            guard topic.utf8.count <= Publisher.maxTopicBytes, self.topics.count < limits.topicsPerSubscriber,
                set(ZMQ_SUBSCRIBE, topic)
            else {
                leftOut.append(topic)
                continue
            }
            self.topics.insert(topic)
        }
        wakeup.signal()
        return leftOut
    }

    /// Unsubscribes from topics.
    public func unsubscribe(_ topics: [String]) async {
        for topic in topics where self.topics.remove(topic) != nil { _ = set(ZMQ_UNSUBSCRIBE, topic) }
        wakeup.signal()
    }

    private func set(_ option: Int32, _ topic: String) -> Bool {
        guard socketBox.socket != nil else { return false }
        return (try? socketBox.socket?.socket.set(option, Bytes(topic.utf8))) != nil
    }

    /// The received messages, in order; for one reader.
    ///
    /// Ends when the subscriber is closed.
    public nonisolated var messages: SubscriberMessages { SubscriberMessages(inbox: inbox) }

    /// Returns the counters, by name.
    public func metrics() -> JSONObject {
        [
            "received": JSON(counts.received), "bytesIn": JSON(counts.bytes), "dropped": JSON(counts.dropped),
            "strangeMessages": JSON(counts.unrecognized), "topics": JSON(topics.count),
            "connections": JSON(counts.connections), "connectionsLost": JSON(counts.disconnections),
            "handshakesRefused": JSON(counts.refused),
        ]
    }

    /// Closes the connection and ends ``messages`` and ``events``.
    public func close() async { closeNow() }

    func closeNow() {
        guard socketBox.socket != nil else { return }
        thread.loop.remove(wakeup)
        socketBox.close()
        inbox.finish()
        eventSink.finish()
    }

    /// Runs one pass of the poll loop, in this order: the events of the connection, and received messages.
    func poll(hasEvents: Bool) -> PollInterest {
        guard socketBox.socket != nil else { return PollInterest(wantsInput: false) }
        for event in hasEvents ? socketBox.socket?.events() ?? [] : [] {
            switch event {
            case .ready:
                counts.connections += 1
                eventSink.yield(.connected)
            case .closed:
                counts.disconnections += 1
                eventSink.yield(.disconnected)
            case .refused:
                counts.refused += 1
                guard hasKeys, let count = refusals.count(at: MonotonicClock.system.nowMicroseconds()) else { continue }
                logger.warning(
                    "the publisher refused the connection: check the server key given here and its list of keys",
                    metadata: ["address": "\(address)", "refusals": "\(count)"]
                )
            case .opened: break
            }
        }
        for _ in 0..<limits.receiveBudget {
            guard
                let message = socketBox.socket?.socket.receive(
                    maxFrames: limits.maxFrames,
                    maxBytes: limits.maxMessageBytes
                )
            else {
                return PollInterest()
            }
            handle(message)
        }
        return PollInterest(hasMoreWork: true)
    }

    private func handle(_ message: IncomingMessage) {
        guard message.violation == nil, let frame = message.frames.first,
            let topic = String(validating: frame, as: UTF8.self)
        else {
            counts.unrecognized += 1
            return
        }
        guard topics.contains(topic) || topics.contains("") else { return }
        counts.received += 1
        counts.bytes += message.totalBytes
        let publication = Publication(topic: topic, frames: Array(message.frames.dropFirst()))
        if !inbox.enqueue(publication, bytes: message.totalBytes) { counts.dropped += 1 }
    }
}

/// A received message and its topic.
struct Publication: Sendable {
    let topic: String
    let frames: [Bytes]
}

// MARK: - Messages

/// The sequence of a subscriber's messages.
public struct SubscriberMessages: AsyncSequence, Sendable {
    public typealias Element = (topic: String, frames: [Bytes])
    public typealias Failure = Never

    let inbox: Mailbox<Publication>

    /// The outcome of waiting for a message with ``nextArrival()``.
    public enum Arrival: Sendable {
        case message(topic: String, frames: [Bytes])
        /// No message has arrived for an interval of ``watchSilence(every:)``.
        case silence
        /// The subscriber is closed or the task cancelled.
        case end
    }

    /// Waits for the next message, or until there was none for as long as ``watchSilence(every:)`` says.
    public func nextArrival() async -> Arrival {
        switch await inbox.next() {
        case .element(let publication): .message(topic: publication.topic, frames: publication.frames)
        case .cancelled: Task.isCancelled ? .end : .silence
        case .end: .end
        }
    }

    /// Ends each call of ``nextArrival()`` that has waited for one to two intervals. One timer serves all messages.
    ///
    /// - Returns: the task of the timer, to be cancelled by its owner; it ends with the subscriber too
    public func watchSilence(every interval: Duration) -> Task<Void, Never> {
        Task { [weak inbox = self.inbox] in
            for await _ in TaskDelay.ticks(every: interval) {
                guard !Task.isCancelled, let inbox else { return }
                inbox.endSilentWait()
            }
        }
    }

    public func makeAsyncIterator() -> Iterator { Iterator(inbox: inbox) }

    /// The iterator of a subscriber's messages.
    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Mailbox<Publication>

        /// Returns the next message; `nil` if the subscriber is closed or the task cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> (topic: String, frames: [Bytes])? {
            guard case .element(let publication) = await inbox.next() else { return nil }
            return (publication.topic, publication.frames)
        }
    }
}
