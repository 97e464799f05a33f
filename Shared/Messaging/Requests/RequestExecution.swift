public import Basics
public import JSONValue
import Synchronization

/// Runs one request's handler, on Swift's concurrent executor or on that of the handler, and posts its response.
struct RequestExecution: Sendable {
    let request: OpenRequest
    let handler: any RequestHandler
    let events: ServerEventQueue

    /// Runs the handler until it returns, which may be long after the server has answered the request itself.
    @concurrent
    func run() async {
        let event = await callHandler()
        request.signal.end(.finished)
        events.post(event)
    }

    /// Calls the handler, and returns the event with its response, for which it waits for capacity.
    private func callHandler() async -> ServerEvent {
        let id = request.incoming.id
        do throws(RPCError) {
            var context = request.context
            context.notifier = Notifier(request, events: events)
            let reply = try await handler.handle(request.incoming, context)
            let frames = [reply.frame(id: id)] + reply.attachments
            if var violation = events.limits.violation(of: frames) {
                violation.message += "; request less at once"
                throw violation
            }
            switch await request.outbox.reserve(frames.reduce(0) { $0 + $1.count }) {
            case .success(let reservation):
                return .finished(
                    request,
                    OutgoingMessage(request.prefix + frames, reservation: reservation),
                    failure: nil
                )
            case .failure(let refusal) where refusal.outcome == .refused:
                throw refusal.error("read the replies before sending more requests")
            case .failure: throw .cancelled("the request was cancelled")
            }
        } catch {
            var error = error
            // A service closes its own clients only when it stops.
            if error.isOfClosedClient { error = .endedByStop }
            if request.signal.reason == .cancelled { error = .cancelled("the request was cancelled") }
            var frame = RPCMessageWriter.error(id: id, error)
            if frame.count > events.limits.maxMessageBytes {
                error.data = [:]
                error.message = String(error.message.prefix(1000))
                frame = RPCMessageWriter.error(id: id, error)
            }
            let message = OutgoingMessage(
                request.prefix + [frame],
                reservation: request.outbox.reserveWithoutWaiting(frame.count)
            )
            return .finished(request, message, failure: error.name)
        }
    }
}

// MARK: - An open request

/// An open request, shared by its task, its notifier and the poll thread.
final class OpenRequest: Sendable {
    let incoming: IncomingRequest
    /// Without the notifier, which refers to this object.
    let context: RequestContext
    /// Frames that precede every message to the client: the routing id and REQ's envelope.
    let prefix: [Bytes]
    let signal = CancellationSignal()
    /// The credit that notifications use; nil if the request was opened without credit.
    let credit: ByteSemaphore?
    /// The capacity for messages to the client.
    let outbox: ConnectionOutbox
    /// Memory reserved for the request.
    private let reservation: RequestReservation?

    init(
        _ incoming: IncomingRequest,
        _ context: RequestContext,
        prefix: [Bytes],
        credit: ByteSemaphore?,
        outbox: ConnectionOutbox,
        reservation: RequestReservation?
    ) {
        self.incoming = incoming
        self.context = context
        self.prefix = prefix
        self.credit = credit
        self.outbox = outbox
        self.reservation = reservation
    }
}

// MARK: - The end of a request

/// A one-shot signal that ends a request's task.
final class CancellationSignal: Sendable {
    private struct State {
        /// The reason for the end; nil before it.
        var reason: TerminationReason?
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())

    /// The reason for the end; nil before it.
    var reason: TerminationReason? { state.withLock { $0.reason } }

    /// Signals the end, and cancels the task unless it has finished. Only the first call has an effect.
    func end(_ reason: TerminationReason) {
        let task: Task<Void, Never>? = state.withLock { state in
            guard state.reason == nil else { return nil }
            state.reason = reason
            defer { state.task = nil }
            return state.task
        }
        if reason != .finished, let task { Self.cancel(task) }
    }

    /// Sets the task to cancel; cancels it at once if the end was signalled before.
    func attach(_ task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            if state.reason == nil { state.task = task }
            return state.reason != nil && state.reason != .finished
        }
        if isCancelled { Self.cancel(task) }
    }

    /// Cancels on Swift's concurrent executor instead of the caller's thread, because cancelling runs the handlers'
    /// cancellation code.
    private static func cancel(_ task: Task<Void, Never>) { Task.detached { task.cancel() } }
}

/// The reason for the end of a request's task.
enum TerminationReason: Sendable {
    case finished, cancelled, deadline, connectionLost, stopping
}

// MARK: - Notifications

/// Sends notifications about one request before its response, for example `image.degraded` and `progress`.
public struct Notifier: Sendable {
    private let request: OpenRequest?
    private let events: ServerEventQueue?

    init(_ request: OpenRequest, events: ServerEventQueue) {
        self.request = request
        self.events = events
    }

    private init() {
        request = nil
        events = nil
    }

    /// A notifier that sends nothing.
    static var silent: Notifier { Notifier() }

    /// Sends one notification; the request's `id` is added to its params.
    ///
    /// Waits until the request's byte credit and the outbox have capacity; the bytes of all frames count.
    ///
    /// - Returns: whether it was sent: `false` for a REQ client, which cannot receive notifications.
    /// - Throws: `user_cancelled` if the request ended while waiting, `limit_exceeded` if the message exceeds the size
    ///   limits or too many messages wait for this peer.
    @discardableResult
    public func notify(
        _ method: String,
        _ params: JSONObject,
        attachments: [Bytes] = []
    ) async throws(RPCError) -> Bool {
        guard let request else { return false }
        var params = params
        params["id"] = request.incoming.id
        return try await send([RPCMessageWriter.notification(method: method, params: params)] + attachments)
    }

    /// Sends one notification whose params are already encoded: the text of one JSON object without an `id`.
    @discardableResult
    public func notify(_ method: String, encoded params: Bytes) async throws(RPCError) -> Bool {
        try await notify(method, encoded: [params])
    }

    /// Sends one notification whose encoded params come in pieces; they are joined once, in the message.
    @discardableResult
    public func notify(_ method: String, encoded params: [Bytes]) async throws(RPCError) -> Bool {
        guard let request else { return false }
        let id = request.incoming.id
        return try await send([RPCMessageWriter.notification(method: method, encoded: params, id: id)])
    }

    private func send(_ frames: [Bytes]) async throws(RPCError) -> Bool {
        guard let request, let events, request.context.acceptsNotifications else { return false }
        if let violation = events.limits.violation(of: frames) { throw violation }
        let bytes = frames.reduce(0) { $0 + $1.count }
        if let credit = request.credit, await credit.acquire(bytes) != .acquired { throw Self.ended }
        switch await request.outbox.reserve(bytes) {
        case .success(let reservation):
            guard request.signal.reason == nil else { throw Self.ended }
            events.post(.notification(request, OutgoingMessage(request.prefix + frames, reservation: reservation)))
            return true
        case .failure(let refusal) where refusal.outcome == .refused:
            throw refusal.error("read faster or open the request with credit")
        case .failure: throw Self.ended
        }
    }

    private static let ended = RPCError.cancelled("the request has ended; the notification was not sent")
}

// MARK: - Events for the poll thread

/// The queue of events from tasks to the poll thread, read in batches.
final class ServerEventQueue: Sendable {
    private let events = Mutex<[ServerEvent]>([])
    private let wakeup: PollWakeup
    let limits: MessagingLimits

    init(wakeup: PollWakeup, limits: MessagingLimits) {
        self.wakeup = wakeup
        self.limits = limits
    }

    func post(_ event: ServerEvent) {
        events.withLock { $0.append(event) }
        wakeup.signal()
    }

    /// Removes and returns all events.
    func removeAll() -> [ServerEvent] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}

/// An event that tasks send to the poll thread.
enum ServerEvent: Sendable {
    /// A notification about an open request; dropped if the request has been answered meanwhile.
    case notification(OpenRequest, OutgoingMessage)
    /// The response, and the end of the request's task; dropped if the request has been answered meanwhile.
    case finished(OpenRequest, OutgoingMessage, failure: String?)
    /// A large JSON frame has been parsed.
    case parsed(ConnectionID, RPCMessage, IncomingMessage, prefix: [Bytes])
    /// These public keys were removed from the list.
    case revoked(Set<String>)
    /// The access of these identities has changed.
    case review(Set<String>)
    /// The server must not accept further requests.
    case stop
}
