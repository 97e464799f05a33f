import CZeroMQ
import DequeModule
public import JSONValue
public import Logging

/// Asks the service at one address. Connects when it can and again when the connection breaks; requests that were not
/// sent yet wait for it until their deadline.
public actor RequestClient {
    let thread: PollThread
    let limits: MessagingLimits
    let logger: Logger
    let outbox: ClientOutbox
    private let doorbell: Doorbell
    private var socket: Socket?
    private var monitor: SocketMonitor?
    private var calls: CallTable
    /// `rpc.cancel` and `rpc.credit` that libzmq would not take yet.
    private var control: Deque<OutgoingMessage> = []
    private var nextDeadline = Int64.max
    private var isFull = false
    private var counts = (sent: 0, answers: 0, strays: 0, malformed: 0, lost: 0, connections: 0)

    /// Where the service is.
    public nonisolated let address: EndpointAddress

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Begins to connect; a service that is not there yet is no error.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        logger: Logger
    ) throws(MessagingError) {
        let socket = try Socket(ZMQ_DEALER, context: thread.context)
        try socket.configure(
            limits,
            send: limits.sendHighWaterMark,
            receive: limits.receiveHighWaterMark,
            linger: limits.linger
        )
        // Without it libzmq takes a thousand requests for a service that is not there.
        try socket.set(ZMQ_IMMEDIATE, 1 as Int32)
        let monitor = try SocketMonitor(of: socket, context: thread.context)
        try socket.connect(address)
        self.address = address
        self.thread = thread
        self.limits = limits
        self.logger = logger
        self.calls = CallTable(window: limits.requestsPerConnection)
        self.doorbell = thread.loop.makeDoorbell()
        self.outbox = ClientOutbox(doorbell: doorbell, bytes: limits.outboxBytesPerConnection)
        let handles = (SocketHandle(socket), SocketHandle(monitor.socket))
        self.socket = consume socket
        self.monitor = consume monitor
        thread.loop.add(
            PollClient(
                doorbell: doorbell,
                socket: handles.0,
                monitor: handles.1,
                turn: { [weak self] in self.map { client in client.assumeIsolated { $0.turn() } } },
                close: { [weak self] in self?.assumeIsolated { $0.closeNow() } }
            )
        )
    }

    isolated deinit {
        thread.loop.remove(doorbell)
        socket = nil
        monitor = nil
    }

    // MARK: From any task

    /// Asks once and waits for the answer.
    ///
    /// - Parameters:
    ///   - params: an object, or null for none.
    ///   - deadline: sent along as `deadlineMs`, 1 ms to the longest that the limits allow.
    /// - Throws: the service's error; `user_cancelled` when this task is cancelled; `connection_lost` when the connection
    ///   breaks meanwhile, and then it is unknown whether the request was carried out; `deadline_exceeded`.
    public nonisolated func call(
        _ method: String,
        _ params: JSON = [:],
        attachments: [Bytes] = [],
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> Reply {
        let inbox = Mailbox<CallElement>(maxElements: 1, maxBytes: .max)
        let draft = try draft(method, params, attachments, deadline: deadline, credit: nil)
        switch await outbox.room.take(draft.byteCount) {
        case .taken: break
        case .cancelled: throw .cancelled("the task that waited was cancelled")
        case .closed, .refused: throw Self.closed
        }
        let call = try send(draft, inbox: inbox, isStream: false)
        switch await inbox.take() {
        case .element(.reply(let reply)): return reply
        case .end(let failure?): throw failure
        case .cancelled:
            takeBack(call)
            throw .cancelled("the task that waited was cancelled")
        case .element(.notification), .end(nil):
            throw .internalError("the service answered without a result")
        }
    }

    /// Asks for something that brings notifications before its answer.
    ///
    /// - Parameters:
    ///   - deadline: `nil` leaves it to the service: with credit the request lives as long as its connection, without
    ///     it the service's default holds.
    ///   - credit: bytes of notifications that may be on their way unread; given back as they are consumed.
    public nonisolated func stream(
        _ method: String,
        _ params: JSON = [:],
        attachments: [Bytes] = [],
        deadline: Duration?,
        credit: Int? = nil
    ) -> RequestStream {
        RequestStream(
            client: self,
            method: method,
            params: params,
            attachments: attachments,
            deadline: deadline,
            credit: credit
        )
    }

    /// A request before it has room in the outbox.
    struct Draft {
        let id: Int64
        let frames: [Bytes]
        let byteCount: Int
        let deadline: Int64
    }

    nonisolated func draft(
        _ method: String,
        _ params: JSON,
        _ attachments: [Bytes],
        deadline: Duration?,
        credit: Int?
    ) throws(RPCError) -> Draft {
        var members: JSONObject
        switch params {
        case .object(let object): members = object
        case .null: members = [:]
        default: throw .invalidParams("params is an object with named members")
        }
        var end = Int64.max
        let now = MonotonicClock.system.nowMicroseconds()
        if let deadline {
            let milliseconds = min(max(1, deadline.microseconds / 1000), limits.maxDeadline.microseconds / 1000)
            members["deadlineMs"] = .int(milliseconds)
            end = now.addingClamped(milliseconds * 1000)
        } else if credit == nil {
            end = now.addingClamped(limits.defaultDeadline.microseconds)
        }
        if let credit { members["credit"] = JSON(max(0, credit)) }
        let id = outbox.nextID()
        let frames = [EnvelopeWriter.request(id: .int(id), method: method, params: members)] + attachments
        if let violation = limits.violation(of: frames) { throw violation }
        return Draft(id: id, frames: frames, byteCount: frames.reduce(0) { $0 + $1.count }, deadline: end)
    }

    /// Sends a draft that has its room.
    nonisolated func send(
        _ draft: Draft,
        inbox: Mailbox<CallElement>,
        isStream: Bool
    ) throws(RPCError) -> OutgoingCall {
        let charge = Charge(bytes: draft.byteCount, gates: [outbox.room])
        let call = OutgoingCall(
            id: draft.id,
            message: OutgoingMessage(draft.frames, charge: charge),
            inbox: inbox,
            deadline: draft.deadline,
            wantsNotifications: isStream
        )
        guard outbox.post(.open(call)) else { throw Self.closed }
        return call
    }

    private static let closed = RPCError.connectionLost("the client is closed")

    nonisolated func takeBack(_ call: OutgoingCall) { outbox.post(.takeBack(call)) }

    nonisolated func giveCredit(_ bytes: Int, to call: OutgoingCall) { outbox.post(.credit(call, bytes: bytes)) }

    /// Closes the connection; calls under way throw `connection_lost`.
    public func close() async { closeNow() }

    /// What happened so far, by name.
    public func figures() -> JSONObject {
        [
            "open": JSON(calls.open), "sent": JSON(counts.sent), "answers": JSON(counts.answers),
            "strayMessages": JSON(counts.strays), "malformedMessages": JSON(counts.malformed),
            "connections": JSON(counts.connections), "connectionsLost": JSON(counts.lost),
        ]
    }

    // MARK: On the poll thread

    private func closeNow() {
        guard socket != nil else { return }
        thread.loop.remove(doorbell)
        monitor = nil
        socket = nil
        var ended = calls.removeAll()
        for case .open(let call) in outbox.close() { ended.append(call) }
        for call in ended { call.inbox.finish(.connectionLost("the client was closed")) }
    }

    private func turn() -> Turn {
        guard socket != nil else { return Turn(wantsInput: false) }
        for event in monitor?.drain() ?? [] { take(event) }
        for command in outbox.drain() { take(command) }
        let isHungry = receive(budget: limits.receiveBudget)
        expire()
        sendWaiting()
        var turn = Turn(wantsOutput: isFull, isHungry: isHungry)
        if nextDeadline != .max {
            turn.wakeAfter = max(0, nextDeadline - MonotonicClock.system.nowMicroseconds())
        }
        return turn
    }

    private func take(_ event: ConnectionEvent) {
        switch event {
        case .closed:
            // What the service answered before is still to be read.
            while receive(budget: limits.receiveBudget) {}
            counts.lost += 1
            control = []
            for call in calls.connectionLost() {
                call.inbox.finish(
                    .connectionLost(
                        "the connection to \(address) broke; whether the request was carried out is unknown"
                    )
                )
            }
        case .ready: counts.connections += 1
        case .opened, .refused: break
        }
    }

    private func take(_ command: ClientCommand) {
        switch command {
        case .open(let call):
            calls.add(call)
            nextDeadline = min(nextDeadline, patience(with: call))
        case .takeBack(let call):
            tellTakenBack(call)
        case .credit(let call, let bytes):
            guard calls.isSent(call), calls.isOpen(call) else { return }
            let params: JSONObject = ["id": .int(call.id), "bytes": JSON(bytes)]
            control.append(OutgoingMessage([EnvelopeWriter.notification(method: "rpc.credit", params: params)]))
        }
    }

    private func tellTakenBack(_ call: OutgoingCall) {
        guard calls.isOpen(call) else { return }
        call.dropMessage()
        guard calls.takeBack(call) else { return }
        let params: JSONObject = ["id": .int(call.id)]
        control.append(OutgoingMessage([EnvelopeWriter.notification(method: "rpc.cancel", params: params)]))
    }

    /// The service answers at the deadline; this side gives up only when it does not.
    private static let grace: Int64 = 1_000_000

    private func patience(with call: OutgoingCall) -> Int64 {
        call.deadline.addingClamped(calls.isSent(call) ? Self.grace : 0)
    }

    private func expire() {
        let now = MonotonicClock.system.nowMicroseconds()
        guard now >= nextDeadline else { return }
        let (due, later) = calls.expired(now)
        nextDeadline = later
        for call in due {
            let moment = patience(with: call)
            guard moment <= now else {
                nextDeadline = min(nextDeadline, moment)
                continue
            }
            let what = calls.isSent(call) ? "did not answer in time" : "could not be reached in time"
            tellTakenBack(call)
            call.inbox.finish(.deadlineExceeded("\(address) \(what)"))
        }
    }

    private func sendWaiting() {
        isFull = false
        while let message = control.first {
            guard attempt(message) else { return }
            control.removeFirst()
        }
        while let call = calls.nextToSend() {
            guard attempt(call.pending ?? OutgoingMessage([])) else { return }
            calls.markSent(call)
            call.dropMessage()
            counts.sent += 1
        }
    }

    private func attempt(_ message: OutgoingMessage) -> Bool {
        guard let outcome = socket?.send(message) else { return false }
        if outcome == .full {
            isFull = true
            return false
        }
        return true
    }

    private func receive(budget: Int) -> Bool {
        for _ in 0..<budget {
            guard let message = socket?.receive(maxFrames: limits.maxFrames, maxBytes: limits.maxMessageBytes) else {
                return false
            }
            take(message)
        }
        return true
    }

    private func take(_ message: IncomingMessage) {
        guard message.violation == nil, let frame = message.frames.first,
            let json = try? JSON(parsing: frame, limits: limits.json), case .object(let object) = json
        else {
            counts.malformed += 1
            return
        }
        let attachments = Array(message.frames.dropFirst())
        if let method = object["method"]?.stringValue {
            notify(method, object["params"] ?? [:], attachments, message.totalBytes)
            return
        }
        guard case .int(let id) = object["id"], let call = calls.answered(id) else {
            counts.strays += 1
            return
        }
        counts.answers += 1
        if let result = object["result"] {
            _ = call.inbox.put(.reply(Reply(result, attachments: attachments)), bytes: message.totalBytes, always: true)
            call.inbox.finish()
        } else {
            let error = object["error"].flatMap(RPCError.init(json:))
            call.inbox.finish(error ?? .internalError("the service answered with neither a result nor an error"))
        }
    }

    private func notify(_ method: String, _ params: JSON, _ attachments: [Bytes], _ bytes: Int) {
        guard case .int(let id) = params["id"], let call = calls.about(id) else {
            counts.strays += 1
            return
        }
        guard call.wantsNotifications else { return }
        let element = CallElement.notification(method: method, params: params, attachments: attachments, bytes: bytes)
        if call.inbox.put(element, bytes: bytes) { return }
        tellTakenBack(call)
        call.inbox.finish(
            .limitExceeded("notifications came faster than they were read; open the stream with credit")
        )
    }
}
