public import JSONValue

/// A request as passed to the handler: envelope and limits have been checked, `deadlineMs` and `credit` removed from
/// params. ``RequestContext`` has the rest: connection, deadline, credit.
public struct IncomingRequest: Sendable {
    /// A string or an integer, unique among the connection's open requests.
    public let id: JSON
    /// The method's name, 1 to 128 bytes.
    public let method: String
    /// An object; `{}` if the request had none.
    public let params: JSON

    /// Makes a request for tests of handlers; requests from the wire are made by ``RequestServer``.
    public init(id: JSON, method: String, params: JSON = [:]) {
        self.id = id
        self.method = method
        self.params = params
    }
}

/// The methods of a service, called by a ``RequestServer``.
public protocol RequestHandler: Sendable {
    /// Handles one request, on Swift's concurrent executor or on that of ``executor(for:_:)``. Many run concurrently.
    ///
    /// The task is cancelled when the caller cancels the request, at its deadline, and when its connection ends.
    @concurrent func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply

    /// Returns a reply that needs no waiting, on the poll thread; nil leaves the request, and every error of it, to
    /// ``handle(_:_:)``.
    ///
    /// It saves two thread switches. All connections wait meanwhile, so it must neither read a file nor block. The context's
    /// notifier sends nothing.
    func replyAtOnce(to request: IncomingRequest, _ context: RequestContext) -> Reply?

    /// Returns the executor that a request's task runs on; nil for Swift's concurrent executor. Called on the poll
    /// thread, on which the executor may run the task until it first waits.
    func executor(for request: IncomingRequest, _ context: RequestContext) -> (any TaskExecutor)?

    /// Returns the limits for requests of a method; they are checked on the poll thread before anything is parsed or
    /// run.
    func limits(of method: String) -> MethodLimits

    /// Returns what the handler knows about the access of an identity, on the poll thread; asked once for a connection.
    /// It must not block.
    ///
    /// - Parameter key: the public key of the connection; nil without CURVE
    func cachedPermission(of identity: String, key: String?) -> CachedPermission?

    /// Returns the error that an open request ends with because its identity has lost access; nil if it may go on.
    /// Called on the poll thread, after ``RequestServer/review(_:)``.
    func refusal(of method: String, for identity: String, _ cached: CachedPermission?) -> RPCError?

    /// Notes that a connection has ended, on the poll thread. It must not block.
    func connectionEnded(_ connection: ConnectionID)
}

extension RequestHandler {
    /// Returns no limits except those of every message.
    public func limits(of method: String) -> MethodLimits { .unlimited }

    /// Does nothing.
    public func connectionEnded(_ connection: ConnectionID) {}

    /// Returns nil: nothing is known, and every request is the handler's own matter.
    public func cachedPermission(of identity: String, key: String?) -> CachedPermission? { nil }

    /// Returns nil.
    public func refusal(of method: String, for identity: String, _ cached: CachedPermission?) -> RPCError? { nil }

    /// Returns nil.
    public func executor(for request: IncomingRequest, _ context: RequestContext) -> (any TaskExecutor)? { nil }

    /// Returns nil.
    public func replyAtOnce(to request: IncomingRequest, _ context: RequestContext) -> Reply? { nil }
}
