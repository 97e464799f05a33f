public import Basics
import CZeroMQ
public import JSONValue

/// A received message, with the identity of its sender.
public struct PulledMessage: Sendable, Equatable {
    /// The frames, as they were pushed.
    public let frames: [Bytes]
    /// As in ``RequestContext/identity``.
    public let identity: String
}

/// Receives messages from pushers: PULL. It loses no message that it has received: if its reader is slow, it stops
/// reading from the socket, and the pushers wait.
///
/// libzmq reads ahead from each connection, and keeps these messages after the connection has ended. So over TCP a key
/// may have few connections. While the socket is not read, the keys of new connections are unknown, and few are
/// accepted. Connections beyond these limits are ended, and their peers reconnect.
public actor Puller: SocketOwner {
    private let thread: PollThread
    /// The ZAP domain, whose list of keys applies; nil without CURVE.
    private let domain: String?
    private let limits: MessagingLimits
    private let wakeup: PollWakeup
    private nonisolated let inbox: Mailbox<PulledMessage>
    private let socketBox: SocketBox<MonitoredSocket>
    private let peers: PeerTable
    /// The number of connections made since the socket was last empty from which no message has been read.
    private var unknownCount = 0
    private var counts = (received: 0, refused: 0, bytes: 0, ended: 0)

    /// The bound address, with the actual port if the given one left it open.
    public nonisolated let boundAddress: EndpointAddress

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Binds and begins to receive.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none
    ) throws(MessagingError) {
        let plain = try Socket(ZMQ_PULL, context: thread.context)
        try plain.configure(limits, send: 1, receive: limits.pullHighWaterMark, linger: .zero, hasHeartbeat: false)
        let socket = try MonitoredSocket(plain, context: thread.context)
        self.boundAddress = try socket.socket.bind(address, security: security)
        self.peers = PeerTable(
            thread.context,
            boundAddress,
            security,
            maxPerKey: limits.pushersPerKey,
            maxSilent: 4 * limits.pushersPerKey
        )
        self.thread = thread
        self.domain = security.domain
        self.limits = limits
        let wakeup = thread.loop.makeWakeup()
        self.wakeup = wakeup
        self.inbox = Mailbox(maxElements: limits.inboxMessages, maxBytes: limits.inboxBytes) { wakeup.signal() }
        self.socketBox = SocketBox(socket)
        thread.loop.add(self, socketBox, wakeup)
    }

    deinit {
        thread.loop.remove(wakeup)
        inbox.finish()
    }

    /// The received messages; for one reader.
    ///
    /// Ends when the puller is closed.
    public nonisolated var messages: PulledMessages { PulledMessages(inbox: inbox) }

    /// Returns the counters, by name.
    public func metrics() -> JSONObject {
        [
            "received": JSON(counts.received), "bytesIn": JSON(counts.bytes), "refused": JSON(counts.refused),
            "connections": JSON(peers.count), "connectionsEnded": JSON(counts.ended),
        ]
    }

    /// Unbinds and closes the socket.
    ///
    /// Messages already received can still be read from ``messages``.
    public func close() async { closeNow() }

    func closeNow() {
        guard socketBox.socket != nil else { return }
        thread.loop.remove(wakeup)
        socketBox.close()
        peers.removeAll()
        inbox.finish()
    }

    /// Returns whether the sender's key is still on the list.
    private func isAdmitted(_ curveIdentity: CurveIdentity?) -> Bool {
        guard let domain else { return true }
        return curveIdentity.map { thread.context.authenticator.isAdmitted($0, to: domain) } ?? false
    }

    func poll(hasEvents: Bool) -> PollInterest {
        guard socketBox.socket != nil else { return PollInterest(wantsInput: false) }
        if hasEvents { readEvents() }
        var interest = receive()
        if !interest.wantsInput, boundAddress.transport == .tcp { endUnknown() }
        let now = MonotonicClock.system.nowMicroseconds()
        for peer in peers.silent(at: now) { end(peer) }
        // While the socket is not read, whole messages may be in flight besides those in its queue.
        let longest = limits.maxMessageBytes * (Int(limits.pullHighWaterMark) + 3)
        for peer in peers.endless(at: now, above: longest) { end(peer) }
        let nextCheck = min(peers.nextCheck, peers.nextEndlessMessageCheck)
        if nextCheck != .max { interest.wakeAfter = nextCheck.addingClamped(-now) }
        return interest
    }

    /// Receives messages, up to the budget.
    private func receive() -> PollInterest {
        for _ in 0..<limits.receiveBudget {
            guard !inbox.reportCapacityIfFull() else { return PollInterest(wantsInput: false) }
            guard
                let message = socketBox.socket?.socket.receive(
                    maxFrames: limits.maxFrames,
                    maxBytes: limits.maxMessageBytes,
                    wantsPeer: true
                )
            else {
                unknownCount = 0
                return PollInterest()
            }
            // As for a publisher: events are read in between, so that a message is never attributed to the previous
            // connection of its descriptor.
            readEvents()
            let peer = message.descriptor.flatMap { peers[$0] }
            if peer?.hasSent != true { unknownCount = max(0, unknownCount - 1) }
            if let descriptor = message.descriptor, !peers.identify(descriptor, as: message.curveIdentity) {
                counts.refused += 1
                if let peer { end(peer) }
                continue
            }
            if let descriptor = message.descriptor { peers.delivered(descriptor) }
            let isTooLarge = message.frames.dropFirst().contains { $0.count > limits.maxAttachmentBytes }
            guard message.violation == nil, !isTooLarge, isAdmitted(message.curveIdentity) else {
                counts.refused += 1
                continue
            }
            counts.received += 1
            counts.bytes += message.totalBytes
            let pulled = PulledMessage(
                frames: message.frames,
                identity: Connection.identity(of: message, over: boundAddress.transport)
            )
            // The inbox had space and this is its only writer, so it overshoots by one message at most.
            _ = inbox.enqueue(pulled, bytes: message.totalBytes, always: true)
        }
        return PollInterest(hasMoreWork: true)
    }

    private func readEvents() {
        for event in socketBox.socket?.events() ?? [] {
            switch event {
            case .opened(let descriptor):
                unknownCount += 1
                peers.opened(descriptor, at: MonotonicClock.system.nowMicroseconds())
            case .closed(let descriptor): peers.closed(descriptor)
            case .ready, .refused: break
            }
        }
    }

    /// Ends the newest of the connections that were made while the socket was not read: these have sent the least.
    private func endUnknown() {
        let surplus = unknownCount - limits.pushersPerKey
        guard surplus > 0 else { return }
        for peer in peers.allSilent.suffix(surplus) {
            end(peer)
            unknownCount -= 1
        }
    }

    private func end(_ peer: PeerTable.Peer) {
        if peers.end(peer, readingEvents: { readEvents() }) { counts.ended += 1 }
    }
}

/// The sequence of a puller's messages.
public struct PulledMessages: AsyncSequence, Sendable {
    public typealias Element = PulledMessage
    public typealias Failure = Never

    let inbox: Mailbox<PulledMessage>

    public func makeAsyncIterator() -> Iterator { Iterator(inbox: inbox) }

    /// The iterator of a puller's messages.
    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Mailbox<PulledMessage>

        /// Returns the next message; `nil` if the puller is closed or the task cancelled.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> PulledMessage? {
            guard case .element(let message) = await inbox.next() else { return nil }
            return message
        }
    }
}
