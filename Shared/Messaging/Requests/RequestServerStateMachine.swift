import Basics
import DequeModule
import JSONValue

/// The decisions of a ``RequestServer``: which messages are requests, which of these may run, the responses to the
/// others, and which open requests end.
///
/// It has no sockets, tasks or clock: times are parameters, in microseconds, and the server carries out the decisions.
struct RequestServerStateMachine {
    /// The stages of a server's life; times are in microseconds of its clock.
    enum Stage: Equatable {
        /// Bound, not receiving yet.
        case idle
        case serving
        /// Accepts no requests; running ones are cancelled at that time.
        case draining(until: Int64)
        /// All requests and their tasks have ended; queued messages may be sent until that time.
        case flushing(until: Int64)
        case closed
    }

    /// The peer of a message, and the frames that precede every response to it.
    struct Recipient {
        let connection: Connection
        let prefix: [Bytes]

        /// REQ sockets wait for a response to every message and cannot receive notifications.
        var isREQ: Bool { prefix.count > 1 }
    }

    /// A response by the server itself.
    struct ServerResponse {
        enum Content { case result(JSON), error(RPCError) }

        let content: Content
        let id: JSON
        let recipient: Recipient
    }

    /// A request that may run.
    struct AcceptedRequest {
        let incoming: IncomingRequest
        let context: RequestContext
        let recipient: Recipient
        let reservation: RequestReservation?
    }

    /// The decision about a message.
    enum Decision {
        /// The message is dropped, or it waits.
        case nothing
        case respond(ServerResponse)
        /// A waiting request is cancelled: its response, and that to `rpc.cancel`.
        case cancelWaiting(ServerResponse, ServerResponse?)
        case cancel(OpenRequest, ServerResponse?)
        case addCredit(OpenRequest, bytes: Int, ServerResponse?)
        /// The JSON frame is large: it is parsed on another thread, and the connection's further messages wait.
        case parse(IncomingMessage, Recipient)
        /// The handler replies at once, or the request is opened with ``RequestServerStateMachine/open(_:)``.
        case run(AcceptedRequest)
    }

    /// An open request that ends before its handler has returned.
    struct Ending {
        let request: OpenRequest
        let reason: TerminationReason
        /// The response; nil if the peer has left.
        let response: ServerResponse?
    }

    let limits: MessagingLimits
    let methodLimits: @Sendable (String) -> MethodLimits
    /// Returns what the handler knows about the access of an identity.
    let cachedPermission: @Sendable (_ identity: String, _ key: String?) -> CachedPermission?
    /// Returns whether a key is still on the list; nil without CURVE.
    let isAdmitted: (@Sendable (CurveIdentity) -> Bool)?
    /// The memory of the service for requests and replies.
    private let capacity: ServerCapacity
    private(set) var connections: ConnectionTable
    private(set) var stage = Stage.idle
    /// The number of request tasks that run, including those of requests that were already answered.
    private(set) var running = 0
    /// The earliest deadline or an earlier time; it is recomputed when it is reached.
    private var nextDeadline = Int64.max
    /// The number of waiting requests of all connections.
    var waitingCount = 0
    /// The connections whose next waiting request may be opened, in the order of their turns.
    var turns: Deque<ConnectionID> = []
    /// The earliest time at which a waiting request may have to be answered.
    var nextWaitingCheck = Int64.max
    var metrics = ServerMetrics()

    init(
        transport: EndpointAddress.Transport,
        limits: MessagingLimits,
        capacity: ServerCapacity,
        peers: PeerTable = PeerTable(),
        isAdmitted: (@Sendable (CurveIdentity) -> Bool)? = nil,
        cachedPermission: @escaping @Sendable (_ identity: String, _ key: String?) -> CachedPermission? = { _, _ in
            nil
        },
        methodLimits: @escaping @Sendable (String) -> MethodLimits
    ) {
        self.connections = ConnectionTable(transport: transport, capacity: capacity, peers: peers)
        self.limits = limits
        self.capacity = capacity
        self.isAdmitted = isAdmitted
        self.cachedPermission = cachedPermission
        self.methodLimits = methodLimits
    }

    // MARK: Stages

    /// True while requests run or may still be opened.
    var expectsWork: Bool {
        switch stage {
        case .idle, .serving: true
        case .draining: running > 0
        case .flushing, .closed: false
        }
    }

    /// The time of the next call of ``endExpired(at:)``, if nothing happens before.
    var nextTime: Int64 {
        switch stage {
        case .draining(let until), .flushing(let until): min(nextDeadline, nextWaitingCheck, until)
        case .idle, .serving, .closed: min(nextDeadline, nextWaitingCheck)
        }
    }

    /// Begins to accept requests; returns false if the server was started before.
    mutating func serve() -> Bool {
        guard stage == .idle else { return false }
        stage = .serving
        return true
    }

    /// Stops accepting requests; running ones may finish until the drain timeout.
    ///
    /// - Returns: the endings of requests that only wait for an event
    mutating func drain(at now: Int64) -> [Ending] {
        guard stage == .serving || stage == .idle else { return [] }
        stage = .draining(until: now.addingClamped(limits.drainTimeout.microseconds))
        let methodLimits = methodLimits
        return endRequests(with: .stopping) { request, _ in
            methodLimits(request.incoming.method).waitsForEvents ? .endedByStop : nil
        }
    }

    /// Allows time to send the queued messages after the last task has ended; returns false if the server is closed.
    mutating func flush(at now: Int64) -> Bool {
        guard stage != .closed else { return false }
        stage = .flushing(until: now.addingClamped(limits.linger.microseconds))
        return true
    }

    /// Closes the server; removes and returns its connections, whose requests must be ended.
    mutating func close() -> [Connection] {
        guard stage != .closed else { return [] }
        stage = .closed
        return connections.removeAll()
    }

    // MARK: Connections

    mutating func opened(_ descriptor: Int32, at now: Int64) {
        metrics.peersOpened += 1
        connections.opened(descriptor, at: now)
    }

    /// Removes and returns the connections of a closed descriptor.
    mutating func closed(_ descriptor: Int32) -> [Connection] {
        metrics.peersClosed += 1
        return connections.closed(descriptor)
    }

    /// Removes a connection; returns false if it was removed before.
    mutating func remove(_ connection: Connection) -> Bool { connections.remove(connection.id) != nil }

    /// Returns the connection that a message arrived on, and the one whose routing id it took over.
    ///
    /// - Returns: nil if the message must be dropped: it has no sender, or its sender has already left
    mutating func connection(of message: IncomingMessage) -> (found: Connection?, replaced: Connection?) {
        guard let routing = message.frames.first else { return (nil, nil) }
        // CURVE messages without a key have no identity and are dropped.
        if isAdmitted != nil, message.curveIdentity == nil {
            metrics.messagesDropped += 1
            return (nil, nil)
        }
        var replaced: Connection?
        let found = connections.find(routing: routing, message: message, limits: limits) { replaced = $0 }
        guard case .connection(let connection) = found else {
            metrics.messagesDropped += 1
            return (nil, replaced)
        }
        if connection.cachedPermission == nil {
            connection.cachedPermission = cachedPermission(connection.identity, connection.curveIdentity?.key)
        }
        return (connection, replaced)
    }

    /// Ends the open requests of a connection that was removed.
    mutating func endRequests(of connection: Connection, _ reason: TerminationReason) -> [Ending] {
        waitingCount -= connection.waiting.count
        defer {
            connection.open = [:]
            connection.queuedBehindLarge = []
            connection.waiting = WaitingRequests()
        }
        return connection.open.values.map { Ending(request: $0, reason: reason, response: nil) }
    }

    /// Removes an idle inproc connection, because inproc does not report the end of a connection. The peer's next
    /// message adds it again.
    mutating func forgetIfIdle(_ connection: Connection) {
        guard connection.descriptor == nil, connection.isIdle else { return }
        _ = connections.remove(connection.id)
    }

    // MARK: Open requests

    /// Opens a request that needs a task.
    mutating func open(_ accepted: AcceptedRequest) -> OpenRequest {
        let context = accepted.context
        let request = OpenRequest(
            accepted.incoming,
            context,
            prefix: accepted.recipient.prefix,
            credit: context.credit.map { ByteSemaphore(available: $0, maxAvailable: limits.maxCredit) },
            outbox: accepted.recipient.connection.outbox,
            reservation: accepted.reservation
        )
        nextDeadline = min(nextDeadline, context.deadlineMicroseconds)
        accepted.recipient.connection.open[request.incoming.id] = request
        accepted.recipient.connection.running += 1
        running += 1
        return request
    }

    /// Returns the connection to send a notification about a request on; nil if the request has been answered.
    mutating func notified(_ request: OpenRequest) -> Connection? {
        guard let connection = connections[request.context.connection],
            connection.open[request.incoming.id] === request
        else {
            metrics.notificationsDropped += 1
            return nil
        }
        metrics.notificationsSent += 1
        return connection
    }

    /// Closes a request whose task has ended.
    ///
    /// - Parameter failure: the name of the error in its response; nil for a result
    /// - Returns: the connection to send the response on; nil if the request was answered before
    mutating func finished(_ request: OpenRequest, failure: String?) -> Connection? {
        running -= 1
        guard let connection = connections[request.context.connection] else {
            metrics.responsesDropped += 1
            return nil
        }
        connection.running -= 1
        guard connection.open[request.incoming.id] === request else {
            metrics.responsesDropped += 1
            offerTurn(to: connection)
            forgetIfIdle(connection)
            return nil
        }
        connection.open[request.incoming.id] = nil
        offerTurn(to: connection)
        metrics.responses += 1
        if let failure { metrics.errors[failure, default: 0] += 1 }
        return connection
    }

    /// Ends the requests whose deadline has passed, and all of them once the drain timeout has passed.
    mutating func endExpired(at now: Int64) -> [Ending] {
        var endings: [Ending] = []
        if now >= nextDeadline {
            var earliest = Int64.max
            endings = endRequests(with: .deadline) { request, _ in
                let deadline = request.context.deadlineMicroseconds
                guard deadline > now else { return Self.lateError }
                earliest = min(earliest, deadline)
                return nil
            }
            nextDeadline = earliest
        }
        if case .draining(let until) = stage, now >= until {
            stage = .draining(until: .max)
            endings += endRequests(with: .stopping) { _, _ in .endedByStop }
        }
        return endings
    }

    /// Ends the open requests of keys that were removed from the list.
    mutating func endRequests(ofKeys keys: Set<String>) -> [Ending] {
        endRequests(with: .cancelled) { _, connection in
            connection.curveIdentity.map { keys.contains($0.key) } == true ? Self.revoked : nil
        }
    }

    /// Ends the open requests of some identities for which `error` returns one.
    mutating func endRequests(
        ofIdentities identities: Set<String>,
        _ error: (_ method: String, _ identity: String, CachedPermission?) -> RPCError?
    ) -> [Ending] {
        endRequests(with: .cancelled) { request, connection in
            guard identities.contains(connection.identity) else { return nil }
            return error(request.incoming.method, connection.identity, connection.cachedPermission)
        }
    }

    /// Removes the waiting requests of some identities for which `error` returns one, and returns their responses.
    mutating func removeWaiting(
        of identities: Set<String>,
        _ error: (_ method: String, _ identity: String, CachedPermission?) -> RPCError?
    ) -> [ServerResponse] {
        removeWaiting { connection, entry in
            guard identities.contains(connection.identity) else { return nil }
            return error(entry.request.method, connection.identity, connection.cachedPermission)
        }
    }

    /// Removes the waiting requests of keys that were removed from the list, and returns their responses.
    mutating func removeWaiting(ofKeys keys: Set<String>) -> [ServerResponse] {
        removeWaiting { connection, _ in
            connection.curveIdentity.map { keys.contains($0.key) } == true ? Self.revoked : nil
        }
    }

    /// Ends the open requests for which `error` returns one; their handlers' replies will be dropped.
    private mutating func endRequests(
        with reason: TerminationReason,
        _ error: (OpenRequest, Connection) -> RPCError?
    ) -> [Ending] {
        var endings: [Ending] = []
        for connection in connections.byRouting.values {
            for request in connection.open.values {
                guard let error = error(request, connection) else { continue }
                connection.open[request.incoming.id] = nil
                let recipient = Recipient(connection: connection, prefix: request.prefix)
                let response = ServerResponse(content: .error(error), id: request.incoming.id, recipient: recipient)
                endings.append(Ending(request: request, reason: reason, response: response))
            }
            offerTurn(to: connection)
        }
        return endings
    }

    static let revoked = RPCError.accessDenied("this key was removed from the list; ask the owner of the library")
}

// MARK: - Peers that do not read

extension RequestServerStateMachine {
    /// True if at most half of the capacity for replies is free, for all or for some of the server's connections.
    var isOutboxShort: Bool {
        capacity.local.isOutboxShort || (isAdmitted != nil && capacity.clients.isOutboxShort)
    }

    /// Returns the connection to end because its peer does not read. Among the connections with more than
    /// ``stalledBytes`` in flight, of which no message has left for ``MessagingLimits/stallTimeout``, it is the one
    /// with the most bytes. Called while the outbox is short.
    ///
    /// A connection that cannot be ended, because others have its descriptor too, is skipped.
    ///
    /// - Parameter isFirst: true if the outbox was not short at the previous call; the time without progress begins now
    func stalledConnection(at now: Int64, isFirst: Bool) -> Connection? {
        var largest: (connection: Connection, bytes: Int)?
        for connection in connections.byRouting.values where !connection.isEnding {
            let (bytes, releases) = connection.outbox.usage
            guard !isFirst, bytes > Self.stalledBytes, let stall = connection.stall, stall.releases == releases else {
                connection.stall = (releases, now)
                continue
            }
            guard now.addingClamped(-stall.since) >= limits.stallTimeout.microseconds,
                connections.isSoleOwner(connection)
            else { continue }
            if bytes > largest?.bytes ?? 0 { largest = (connection, bytes) }
        }
        return largest?.connection
    }

    /// A connection with fewer bytes in flight is not ended.
    private static var stalledBytes: Int { 1 << 20 }
}
