public import Basics
public import JSONValue

/// Sends notifications about one request before its response, for example `image.degraded` and `progress`.
public struct Notifier: Sendable {
    private let request: OpenRequest?
    private let outbox: ServerOutbox?

    init(_ request: OpenRequest, outbox: ServerOutbox) {
        self.request = request
        self.outbox = outbox
    }

    private init() {
        request = nil
        outbox = nil
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
        return try await send([EnvelopeWriter.notification(method: method, params: params)] + attachments)
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
        return try await send([EnvelopeWriter.notification(method: method, encoded: params, id: id)])
    }

    private func send(_ frames: [Bytes]) async throws(RPCError) -> Bool {
        guard let request, let outbox, request.context.acceptsNotifications else { return false }
        if let violation = outbox.limits.violation(of: frames) { throw violation }
        let bytes = frames.reduce(0) { $0 + $1.count }
        if let credit = request.credit, await credit.acquire(bytes) != .acquired { throw Self.ended }
        switch await request.outbox.reserve(bytes) {
        case .success(let reservation):
            guard request.signal.ending == nil else { throw Self.ended }
            outbox.post(.notification(request, OutgoingMessage(request.prefix + frames, reservation: reservation)))
            return true
        case .failure(let refusal) where refusal.outcome == .refused:
            throw refusal.error("read faster or open the request with credit")
        case .failure: throw Self.ended
        }
    }

    private static let ended = RPCError.cancelled("the request has ended; the notification was not sent")
}
