import CZeroMQ
public import JSONValue

/// A message that somebody pushed, and who.
public struct PulledMessage: Sendable, Equatable {
    public let frames: [Bytes]
    /// As in ``IncomingRequest/identity``.
    public let identity: String
}

/// Takes in what pushers send: PULL. Loses nothing it has read: when its reader is slow it stops reading, and the pushers
/// wait.
public actor Puller: SocketOwner {
    private let thread: PollThread
    /// Of the list of keys, over CURVE.
    private let domain: String?
    private let limits: MessagingLimits
    private let doorbell: Doorbell
    private nonisolated let inbox: Mailbox<PulledMessage>
    private let holder: SocketHolder<Socket>
    private var counts = (received: 0, refused: 0, bytes: 0)

    /// The address with the port that was found, where the given one left it open.
    public nonisolated let boundAddress: EndpointAddress

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Binds and begins to read.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none
    ) throws(MessagingError) {
        let socket = try Socket(ZMQ_PULL, context: thread.context)
        try socket.configure(limits, send: 1, receive: limits.receiveHighWaterMark, linger: .zero, hasHeartbeat: false)
        self.boundAddress = try socket.bind(address, security: security)
        self.thread = thread
        self.domain = security.domain
        self.limits = limits
        let doorbell = thread.loop.makeDoorbell()
        self.doorbell = doorbell
        self.inbox = Mailbox(maxElements: limits.inboxMessages, maxBytes: limits.inboxBytes) { doorbell.ring() }
        self.holder = SocketHolder(socket)
        thread.loop.add(self, holder, doorbell)
    }

    deinit {
        thread.loop.remove(doorbell)
        inbox.finish()
    }

    /// What was pushed; for one reader.
    ///
    /// Ends when the puller is closed.
    public nonisolated var messages: PulledMessages { PulledMessages(inbox: inbox) }

    /// What happened so far, by name.
    public func figures() -> JSONObject {
        ["received": JSON(counts.received), "bytesIn": JSON(counts.bytes), "refused": JSON(counts.refused)]
    }

    /// Stops listening.
    ///
    /// What was read can still be taken from ``messages``.
    public func close() async { closeNow() }

    func closeNow() {
        guard holder.socket != nil else { return }
        thread.loop.remove(doorbell)
        holder.close()
        inbox.finish()
    }

    /// Whether who connected may still push.
    private func isAdmitted(_ holder: KeyHolder?) -> Bool {
        guard let domain else { return true }
        return holder.map { thread.context.doorkeeper.isAdmitted($0, to: domain) } ?? false
    }

    func turn() -> Turn {
        guard holder.socket != nil else { return Turn(wantsInput: false) }
        for _ in 0..<limits.receiveBudget {
            guard !inbox.isFull() else { return Turn(wantsInput: false) }
            guard
                let message = holder.socket?.receive(
                    maxFrames: limits.maxFrames,
                    maxBytes: limits.maxMessageBytes,
                    wantsPeer: true
                )
            else { return Turn() }
            let hasLarge = message.frames.dropFirst().contains { $0.count > limits.maxAttachmentBytes }
            guard message.violation == nil, !hasLarge, isAdmitted(message.holder) else {
                counts.refused += 1
                continue
            }
            counts.received += 1
            counts.bytes += message.totalBytes
            let pulled = PulledMessage(
                frames: message.frames,
                identity: Connection.identity(of: message, over: boundAddress.transport)
            )
            // There was room a moment ago and nobody else puts anything in; one message may overshoot.
            _ = inbox.put(pulled, bytes: message.totalBytes, always: true)
        }
        return Turn(isHungry: true)
    }
}

/// What a puller takes in.
public struct PulledMessages: AsyncSequence, Sendable {
    public typealias Element = PulledMessage
    public typealias Failure = Never

    let inbox: Mailbox<PulledMessage>

    public func makeAsyncIterator() -> Iterator { Iterator(inbox: inbox) }

    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Mailbox<PulledMessage>

        /// The next message; `nil` when the puller is closed or the task cancelled.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> PulledMessage? {
            guard case .element(let message) = await inbox.take() else { return nil }
            return message
        }
    }
}
