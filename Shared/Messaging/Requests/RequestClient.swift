public import Basics
import CZeroMQ
import DequeModule
public import JSONValue
public import Logging
import Synchronization

/// A client of the service at one address. It connects when the service is reachable and reconnects when the connection
/// breaks; requests that were not sent yet wait for a connection until their deadline.
public actor RequestClient: SocketOwner {
    let thread: PollThread
    let limits: MessagingLimits
    let logger: Logger
    let commands: ClientCommandQueue
    let wakeup: PollWakeup
    let socketBox: SocketBox<MonitoredSocket>
    var calls: CallTable
    /// `rpc.cancel` and `rpc.credit` messages that libzmq did not accept yet.
    var control: Deque<OutgoingMessage> = []
    var nextDeadline = Int64.max
    /// True if libzmq's queue was full at the last attempt to send.
    var isFull = false
    /// True if any request with unparsed notifications or results was ever opened on this client.
    var hasEncodedCalls = false
    /// The state of the connection. Messages are sent once the handshake is complete: before, they can be lost in a
    /// socket that is being closed. Over inproc, which has no handshake, it is always connected.
    public nonisolated let connection: ConnectionState
    var counts = (sent: 0, responses: 0, unmatched: 0, malformed: 0, lost: 0, connections: 0, refused: 0)
    let security: SocketSecurity
    /// The time at which the new socket connects after a connection was lost, in microseconds of the clock; nil if it
    /// has connected.
    var connectsAt: Int64?
    var refusals = LogThrottle()

    /// The address of the service.
    public nonisolated let address: EndpointAddress

    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Begins to connect; an absent service is not an error.
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = .init(),
        security: SocketSecurity = .none,
        logger: Logger
    ) throws(MessagingError) {
        let socket = try Self.makeSocket(thread.context, limits)
        try socket.socket.connect(address, security: security)
        self.address = address
        self.connection = ConnectionState(isReady: address.transport == .inproc)
        self.security = security
        self.thread = thread
        self.limits = limits
        self.logger = logger
        self.calls = CallTable(window: limits.requestsPerConnection)
        self.wakeup = thread.loop.makeWakeup()
        self.commands = ClientCommandQueue(wakeup: wakeup, bytes: limits.sendQueueBytes)
        self.socketBox = SocketBox(socket)
        thread.loop.add(self, socketBox, wakeup)
    }

    deinit { thread.loop.remove(wakeup) }

    /// Makes a socket for one connection.
    ///
    /// A socket that reconnects by itself sends the messages that were not sent over the previous connection, although
    /// their calls have failed. With ZMQ_IMMEDIATE it does not, but then it also drops a response that has arrived, if
    /// it handles the end of the connection before the response is read.
    static func makeSocket(
        _ context: MessagingContext,
        _ limits: MessagingLimits
    ) throws(MessagingError) -> MonitoredSocket {
        let plain = try Socket(ZMQ_DEALER, context: context)
        try plain.configure(
            limits,
            send: limits.sendHighWaterMark,
            receive: limits.receiveHighWaterMark,
            linger: limits.linger
        )
        return try MonitoredSocket(plain, context: context)
    }

    // MARK: From any task

    /// Sends a request and waits for its response.
    ///
    /// `params` is an object, or null for none. The deadline is sent as `deadlineMs`, from 1 ms to the longest that the
    /// limits allow. Throws the service's error; `user_cancelled` if this task is cancelled; `connection_lost` if the
    /// connection breaks meanwhile, and then it is unknown whether the request was carried out; `deadline_exceeded`. If
    /// `waitsForConnection` is false, the request needs a connection now: without one, this throws at once a
    /// `connection_lost` for which ``RPCError/isUnsent`` is true.
    public nonisolated func call(
        _ method: String,
        _ params: JSON = [:],
        attachments: [Bytes] = [],
        deadline: Duration = .seconds(30),
        waitsForConnection: Bool = true
    ) async throws(RPCError) -> Reply {
        let element = try await response(
            to: method,
            params,
            attachments,
            deadline,
            waitsForConnection: waitsForConnection
        )
        guard case .reply(let reply) = element else { throw Self.resultless }
        return reply
    }

    /// Sends a request like ``call(_:_:attachments:deadline:waitsForConnection:)`` and returns the result
    /// unparsed, for callers that forward parts of it.
    public nonisolated func encodedCall(
        _ method: String,
        _ params: JSON = [:],
        deadline: Duration = .seconds(30),
        waitsForConnection: Bool = true
    ) async throws(RPCError) -> EncodedReply {
        let element = try await response(
            to: method,
            params,
            [],
            deadline,
            waitsForConnection: waitsForConnection,
            wantsEncoded: true
        )
        guard case .encodedReply(let reply) = element else { throw Self.resultless }
        return reply
    }

    private nonisolated func response(
        to method: String,
        _ params: JSON,
        _ attachments: [Bytes],
        _ deadline: Duration,
        waitsForConnection: Bool,
        wantsEncoded: Bool = false
    ) async throws(RPCError) -> CallElement {
        let inbox = Mailbox<CallElement>(maxElements: 1, maxBytes: .max)
        let call = try makeCall(
            method,
            params,
            attachments,
            deadline: deadline,
            inbox: inbox,
            waitsForConnection: waitsForConnection,
            wantsEncoded: wantsEncoded
        )
        switch await commands.capacity.acquire(call.byteCount) {
        case .acquired: break
        case .cancelled: throw .cancelled("the waiting task was cancelled")
        case .closed, .refused: throw .ofClosedClient
        }
        try open(call)
        switch await inbox.next() {
        case .element(let element): return element
        case .end(let failure?): throw failure
        case .cancelled:
            cancel(call)
            throw .cancelled("the waiting task was cancelled")
        case .end(nil): throw Self.resultless
        }
    }

    private static let resultless = RPCError.internalError("the service answered without a result")

    /// Sends a request that returns notifications before its response.
    ///
    /// Without a deadline the service decides: with credit the request lives as long as its connection, without credit
    /// the service's default deadline applies. `credit` is the number of bytes of notifications that may be sent before
    /// they are read; consumed bytes are credited again.
    public nonisolated func stream(
        _ method: String,
        _ params: JSON = [:],
        attachments: [Bytes] = [],
        deadline: Duration?,
        credit: Int? = nil,
        waitsForConnection: Bool = true
    ) -> RequestStream {
        RequestStream(
            client: self,
            method: method,
            params: params,
            attachments: attachments,
            deadline: deadline,
            credit: credit,
            waitsForConnection: waitsForConnection
        )
    }

    /// Sends a request like ``stream(_:_:attachments:deadline:credit:waitsForConnection:)``, with unparsed
    /// notifications, for callers that forward them.
    public nonisolated func encodedStream(
        _ method: String,
        _ params: JSON = [:],
        deadline: Duration? = nil,
        credit: Int? = nil
    ) -> EncodedStream {
        EncodedStream(
            stream: RequestStream(
                client: self,
                method: method,
                params: params,
                attachments: [],
                deadline: deadline,
                credit: credit,
                wantsEncoded: true
            )
        )
    }

    // MARK: The steps of a call

    /// Makes a call and the frames of its request. The caller acquires ``ClientCommandQueue/capacity`` for its bytes,
    /// and then opens it. Throws `invalid_params`, or `limit_exceeded` if the message exceeds the limits.
    nonisolated func makeCall(
        _ method: String,
        _ params: JSON,
        _ attachments: [Bytes],
        deadline: Duration?,
        credit: Int? = nil,
        inbox: Mailbox<CallElement>,
        waitsForConnection: Bool,
        wantsNotifications: Bool = false,
        wantsEncoded: Bool
    ) throws(RPCError) -> OutgoingCall {
        var members: JSONObject
        switch params {
        case .object(let object): members = object
        case .null: members = [:]
        default: throw .invalidParams("params must be an object with named members")
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
        let id = commands.nextID()
        let frames = [RPCMessageWriter.request(id: .int(id), method: method, params: members)] + attachments
        if var violation = limits.violation(of: frames) {
            violation.message +=
                "; send the bytes of files with upload.begin and upload.append, and split long requests"
            throw violation
        }
        return OutgoingCall(
            id: id,
            message: OutgoingMessage(frames),
            inbox: inbox,
            deadline: end,
            waitsForConnection: waitsForConnection,
            wantsNotifications: wantsNotifications,
            wantsEncoded: wantsEncoded
        )
    }

    /// Opens a call after capacity for its bytes was acquired: the poll thread sends its request.
    nonisolated func open(_ call: OutgoingCall) throws(RPCError) {
        call.attach(ByteReservation(bytes: call.byteCount, semaphores: [commands.capacity]))
        guard commands.post(.open(call)) else { throw .ofClosedClient }
    }

    nonisolated func cancel(_ call: OutgoingCall) { commands.post(.cancel(call)) }

    nonisolated func giveCredit(_ bytes: Int, to call: OutgoingCall) { commands.post(.credit(call, bytes: bytes)) }

    /// Closes the connection; open calls throw `connection_lost`.
    public func close() async { closeNow() }

    /// Returns the counters, by name.
    public func metrics() -> JSONObject {
        [
            "open": JSON(calls.openCount), "sent": JSON(counts.sent), "answers": JSON(counts.responses),
            "strayMessages": JSON(counts.unmatched), "malformedMessages": JSON(counts.malformed),
            "connections": JSON(counts.connections), "connectionsLost": JSON(counts.lost),
            "handshakesRefused": JSON(counts.refused),
        ]
    }
}

// MARK: - Commands to the poll thread

/// A command that callers send to the poll thread.
enum ClientCommand: Sendable {
    case open(OutgoingCall)
    case cancel(OutgoingCall)
    case credit(OutgoingCall, bytes: Int)
}

/// The queue of commands from callers to the poll thread, read in batches. It is bounded by the capacity that each call
/// acquires first.
final class ClientCommandQueue: Sendable {
    private struct State {
        var commands: [ClientCommand] = []
        var isClosed = false
    }

    /// Capacity for requests that are not sent yet, in bytes.
    let capacity: ByteSemaphore
    private let state = Mutex(State())
    private let lastID = Atomic<Int64>(0)
    private let wakeup: PollWakeup

    init(wakeup: PollWakeup, bytes: Int) {
        self.wakeup = wakeup
        self.capacity = ByteSemaphore(available: bytes, maxAvailable: bytes)
    }

    func nextID() -> Int64 { lastID.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Appends a command.
    ///
    /// - Returns: `false` if the client is closed.
    @discardableResult
    func post(_ command: ClientCommand) -> Bool {
        let isAccepted = state.withLock { state in
            guard !state.isClosed else { return false }
            state.commands.append(command)
            return true
        }
        if isAccepted { wakeup.signal() }
        return isAccepted
    }

    /// Removes and returns all commands.
    func removeAll() -> [ClientCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// Closes the queue and returns the commands in it.
    func close() -> [ClientCommand] {
        capacity.close()
        return state.withLock { state in
            state.isClosed = true
            defer { state.commands = [] }
            return state.commands
        }
    }
}
