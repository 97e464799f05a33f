public import JSONValue

/// Sends notifications about one request before its response: `image.degraded`, `progress` and so on.
public struct Notifier: Sendable {
    private let request: OpenRequest?
    private let outbox: ServerOutbox?
    private let limits: MessagingLimits

    init(_ request: OpenRequest, outbox: ServerOutbox, limits: MessagingLimits) {
        self.request = request
        self.outbox = outbox
        self.limits = limits
    }

    private init() {
        request = nil
        outbox = nil
        limits = MessagingLimits()
    }

    /// For tests of handlers: notifies nobody.
    public static let silent = Notifier()

    /// Sends one notification; its params get the request's `id`.
    ///
    /// Waits until the request's byte credit and the outbox have room; all bytes of a message's frames count.
    ///
    /// - Returns: whether it was sent: `false` for a REQ client, which takes none.
    /// - Throws: `user_cancelled` when the request ended while waiting, `limit_exceeded` when the message is larger than
    ///   a message may be.
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

    /// The same with params at hand in their encoded form: the text of one JSON object without an `id`.
    @discardableResult
    public func notify(_ method: String, encoded params: Bytes) async throws(RPCError) -> Bool {
        try await notify(method, encoded: [params])
    }

    /// The same in pieces, which are put together once, in the message.
    @discardableResult
    public func notify(_ method: String, encoded params: [Bytes]) async throws(RPCError) -> Bool {
        guard let request else { return false }
        let id = request.incoming.id
        return try await send([EnvelopeWriter.notification(method: method, encoded: params, id: id)])
    }

    private func send(_ frames: [Bytes]) async throws(RPCError) -> Bool {
        guard let request, let outbox, request.incoming.acceptsNotifications else { return false }
        if let violation = limits.violation(of: frames) { throw violation }
        let bytes = frames.reduce(0) { $0 + $1.count }
        if let credit = request.credit, await credit.take(bytes) != .taken { throw Self.ended }
        switch await request.takeRoom(bytes) {
        case .success(let charge):
            guard request.signal.ending == nil else { throw Self.ended }
            outbox.post(.notification(request, OutgoingMessage(request.prefix + frames, charge: charge)))
            return true
        case .failure(let refusal) where refusal.outcome == .refused:
            throw .limitExceeded("too much is waiting to leave to this peer; it reads too slowly")
        case .failure: throw Self.ended
        }
    }

    private static let ended = RPCError.cancelled("the request has ended, there is nobody to notify")
}
