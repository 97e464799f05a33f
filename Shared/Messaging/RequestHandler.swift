public import JSONValue

/// One connection of one peer, from its first message to its end.
///
/// A peer that comes back is another one.
public struct ConnectionID: Sendable, Hashable {
    /// The name under which libzmq routes to the peer.
    let routing: Bytes
    /// Tells two connections apart that had the same name, one after the other.
    let serial: UInt64
}

/// A request as the handler gets it: envelope and limits are checked, `deadlineMs` and `credit` are taken out of params.
public struct IncomingRequest: Sendable {
    /// A string or a whole number, unique among the connection's open requests.
    public let id: JSON
    public let method: String
    /// An object; `{}` where the request had none.
    public let params: JSON
    public let attachments: [Bytes]
    public let connection: ConnectionID
    /// Who asks: `uid:1000` over ipc, as the kernel says; `key:<name>` over CURVE; `loopback` where
    /// nobody can tell.
    public let identity: String
    /// Whether the peer takes notifications before the response; REQ sockets do not.
    public let acceptsNotifications: Bool
    /// When the request ends, on the server's clock; `Int64.max` for a stream, which ends with its connection.
    public let deadlineMicroseconds: Int64
    /// The byte credit the request was opened with.
    public let credit: Int?

    /// For tests of handlers; requests from the wire are made by ``RequestServer``.
    public init(
        id: JSON,
        method: String,
        params: JSON = [:],
        attachments: [Bytes] = [],
        connection: ConnectionID = ConnectionID(test: 0),
        identity: String = "loopback",
        acceptsNotifications: Bool = true,
        deadlineMicroseconds: Int64 = .max,
        credit: Int? = nil
    ) {
        self.id = id
        self.method = method
        self.params = params
        self.attachments = attachments
        self.connection = connection
        self.identity = identity
        self.acceptsNotifications = acceptsNotifications
        self.deadlineMicroseconds = deadlineMicroseconds
        self.credit = credit
    }
}

extension ConnectionID {
    /// For tests of handlers.
    public init(test number: UInt64) {
        self.init(routing: [], serial: number)
    }
}

/// The result of a request.
public struct Reply: Sendable, Equatable {
    public var result: JSON
    public var attachments: [Bytes]

    /// The result as it is sent, where it was encoded before; `result` is null then.
    private(set) var encoded: [Bytes]?

    public init(_ result: JSON, attachments: [Bytes] = []) {
        self.result = result
        self.attachments = attachments
    }

    /// A result that is at hand in its encoded form: the text of one JSON value.
    public init(encoded result: Bytes) {
        self.init(encoded: [result])
    }

    /// The same in pieces, which are put together once, in the message.
    public init(encoded pieces: [Bytes]) {
        self.init(.null)
        encoded = pieces
    }

    func frame(id: JSON) -> Bytes {
        encoded.map { EnvelopeWriter.result(id: id, encoded: $0) } ?? EnvelopeWriter.result(id: id, result)
    }
}

/// What a service does with requests.
public protocol RequestHandler: Sendable {
    /// Answers one request, on the pool. Many run at a time.
    ///
    /// The task is cancelled when the caller takes the request back, at its deadline, and when its connection is gone.
    @concurrent func handle(_ request: IncomingRequest, notifier: Notifier) async throws(RPCError) -> Reply

    /// The reply of a request whose answer is at hand, on the poll thread; nil leaves the request, and every error of
    /// it, to ``handle(_:notifier:)``.
    ///
    /// It saves two changes of threads. All connections wait meanwhile, so it neither reads a file nor waits for others.
    func replyAtOnce(to request: IncomingRequest) -> Reply?

    /// What a request of a method may bring; checked on the poll thread before anything is parsed or run.
    func limits(of method: String) -> MethodLimits
}

extension RequestHandler {
    /// Nothing but the limits of a message.
    public func limits(of method: String) -> MethodLimits { .unlimited }

    /// Nothing is at hand.
    public func replyAtOnce(to request: IncomingRequest) -> Reply? { nil }
}
