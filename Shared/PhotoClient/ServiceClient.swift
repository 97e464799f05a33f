public import Contracts
public import JSONValue
public import Logging
public import Messaging

/// The result of a request, with what was attached to it.
public struct Answer<Result: Sendable>: Sendable {
    public var result: Result
    /// The binary frames of the reply, in order.
    public var attachments: [Bytes]

    public init(result: Result, attachments: [Bytes] = []) {
        self.result = result
        self.attachments = attachments
    }
}

/// Asks one service, in the house's own types.
///
/// Connects when the service is there and again when it comes back; a request waits for that until its deadline.
public final class ServiceClient: Sendable {
    /// Where the service is.
    public let address: EndpointAddress
    let requests: RequestClient

    /// Begins to connect; a service that is not there yet is no error.
    ///
    /// - Throws: only what is wrong with this side: no socket is left, or the address cannot be used
    public init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = MessagingLimits(),
        security: SocketSecurity = .none,
        logger: Logger
    ) throws(MessagingError) {
        self.address = address
        self.requests = try RequestClient(
            address: address,
            thread: thread,
            limits: limits,
            security: security,
            logger: logger
        )
    }

    /// Asks once.
    ///
    /// - Throws: the service's error; `deadline_exceeded`; `connection_lost` when the service went away meanwhile, and
    ///   then a write may have been carried out or not; `user_cancelled` when the task is cancelled
    public func ask<R: Request>(
        _ request: R,
        attachments: [Bytes] = [],
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> Answer<R.Result> {
        let reply = try await requests.call(
            R.method,
            request.json,
            attachments: attachments,
            deadline: max(deadline, .milliseconds(1))
        )
        return Answer(result: try R.result(of: reply.result), attachments: reply.attachments)
    }

    /// Asks for something that sends notifications before its answer.
    ///
    /// - Parameters:
    ///   - credit: bytes of notifications that may be under way unread; further credit is given as they are taken
    ///   - deadline: nil: it lives until its answer, or until the connection breaks
    public func stream<R: Request>(_ request: R, credit: Int, deadline: Duration? = nil) -> ServiceStream<R> {
        ServiceStream(requests.stream(R.method, request.json, deadline: deadline, credit: credit))
    }

    /// The same with the notifications as they came, for those who pass them on without reading them.
    public func encodedStream<R: Request>(_ request: R, credit: Int) -> EncodedStream {
        requests.encodedStream(R.method, request.json, credit: credit)
    }

    /// Whether the service can do its work.
    public func health(deadline: Duration = .seconds(5)) async throws(RPCError) -> Health.Result {
        try await ask(Health(), deadline: deadline).result
    }

    /// The service's counters.
    public func figures(deadline: Duration = .seconds(5)) async throws(RPCError) -> JSONObject {
        try await ask(Figures(), deadline: deadline).result.members
    }

    /// What happened on this connection so far, by name.
    public func connectionFigures() async -> JSONObject { await requests.figures() }

    /// Requests under way end with `connection_lost`.
    public func close() async { await requests.close() }
}

extension Request {
    /// Reads an answer of this request.
    static func result(of json: JSON) throws(RPCError) -> Result {
        do throws(JSONProblem) {
            return try Result(json: json)
        } catch {
            throw Refusal.internalError.error("the answer to \(method) cannot be read: \(error)")
        }
    }
}
