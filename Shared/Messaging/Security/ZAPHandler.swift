import Basics
import CZeroMQ
import Synchronization

/// The socket of the ``ZAPAuthenticator``. It answers libzmq's ZAP requests, on a thread of its own because the lists
/// are files.
actor ZAPHandler: SocketOwner {
    private weak let authenticator: ZAPAuthenticator?
    private let thread: PollThread
    private let clock: MonotonicClock
    private let wakeup: PollWakeup
    private let socketBox: SocketBox<Socket>
    private var nextReview = Int64.max
    /// The requests whose reply waits for a decision, the oldest first, each with the time at which it ends undecided.
    private var undecided: [(request: ZAPRequest, expiry: Int64)] = []
    private let isReviewDue = Atomic(false)
    private let isDecisionDue = Atomic(false)

    /// The address to which libzmq sends ZAP requests (RFC 27).
    static let address = "inproc://zeromq.zap.01"
    private static let reviewInterval: Int64 = 1_000_000
    private static let budget = 64
    /// After a reply "try again" libzmq does nothing until the time limit of its handshake
    /// (``MessagingLimits/handshakeInterval``, five seconds), and only then does the client connect again. A decision is
    /// usually known within milliseconds, so the reply waits for it, for less than that time.
    private static let undecidedTimeout: Int64 = 3_000_000
    private static let maxUndecided = (perKey: 16, all: 256)

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Binds; from then on ZAP requests are answered.
    init(authenticator: ZAPAuthenticator, context: MessagingContext, clock: MonotonicClock) throws(MessagingError) {
        let thread = try PollThread(name: "zap", context: context)
        let socket = try Socket(ZMQ_ROUTER, context: context)
        try socket.set(ZMQ_LINGER, 0 as Int32)
        try socket.set(ZMQ_SNDHWM, 0 as Int32)
        try socket.set(ZMQ_RCVHWM, 0 as Int32)
        _ = try socket.bind(EndpointAddress(Self.address))
        self.authenticator = authenticator
        self.thread = thread
        self.clock = clock
        self.wakeup = thread.loop.makeWakeup()
        self.socketBox = SocketBox(socket)
        thread.loop.add(self, socketBox, wakeup)
    }

    deinit { thread.loop.remove(wakeup) }

    /// Checks the admitted keys, and decides again about those that wait, in the next pass of the poll loop.
    nonisolated func reviewSoon() {
        isReviewDue.store(true, ordering: .releasing)
        decideSoon()
    }

    /// Decides again about the requests that wait, in the next pass of the poll loop.
    nonisolated func decideSoon() {
        isDecisionDue.store(true, ordering: .releasing)
        wakeup.signal()
    }

    func closeNow() {
        guard socketBox.socket != nil else { return }
        thread.loop.remove(wakeup)
        socketBox.close()
    }

    func poll(hasEvents: Bool) -> PollInterest {
        guard socketBox.socket != nil else { return PollInterest(wantsInput: false) }
        var poll = PollInterest()
        poll.hasMoreWork = answerRequests()
        let now = clock.nowMicroseconds()
        if isReviewDue.exchange(false, ordering: .acquiring) { nextReview = now }
        if now >= nextReview {
            let isNeeded = authenticator?.review() ?? false
            nextReview = isNeeded ? now.addingClamped(Self.reviewInterval) : .max
        }
        if isDecisionDue.exchange(false, ordering: .acquiring) { decideAgain() }
        while let (request, expiry) = undecided.first, expiry <= now {
            undecided.removeFirst()
            reply(to: request, decide(request))
        }
        let wakeTime = min(nextReview, undecided.first?.expiry ?? .max)
        if wakeTime != .max { poll.wakeAfter = max(0, wakeTime.addingClamped(-now)) }
        return poll
    }

    private func answerRequests() -> Bool {
        for _ in 0..<Self.budget {
            guard let message = socketBox.socket?.receive(maxFrames: 16, maxBytes: 4096, leadingFrames: 1) else {
                return false
            }
            guard let request = ZAPRequest(message) else { continue }
            let decision = decide(request)
            if decision == .undecided, mayWait(request) {
                undecided.append((request, clock.nowMicroseconds().addingClamped(Self.undecidedTimeout)))
            } else {
                reply(to: request, decision)
            }
        }
        return true
    }

    /// Decides again about the requests that wait, and replies to those that are decided.
    private func decideAgain() {
        undecided.removeAll { request, _ in
            let decision = decide(request)
            guard decision != .undecided else { return false }
            reply(to: request, decision)
            return true
        }
    }

    private func mayWait(_ request: ZAPRequest) -> Bool {
        undecided.count < Self.maxUndecided.all
            && undecided.count { $0.request.key == request.key } < Self.maxUndecided.perKey
    }

    private func decide(_ request: ZAPRequest) -> ZAPRequest.Decision {
        authenticator?.decide(domain: request.domain, key: request.key, address: request.address) ?? .refused
    }

    private func reply(to request: ZAPRequest, _ decision: ZAPRequest.Decision) {
        if case .admitted = decision, nextReview == .max {
            nextReview = clock.nowMicroseconds().addingClamped(Self.reviewInterval)
        }
        _ = socketBox.socket?.send(request.reply(decision))
    }
}
