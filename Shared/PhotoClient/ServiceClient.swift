public import Basics
public import Contracts
public import JSONValue
public import Logging
public import Messaging
public import PhotoModel

/// The result of a request, with its attachments.
public struct ServiceResponse<Result: Sendable>: Sendable {
    public var result: Result
    /// The binary frames of the response, in order.
    public var attachments: [Bytes]

    public init(result: Result, attachments: [Bytes] = []) {
        self.result = result
        self.attachments = attachments
    }
}

/// A client of one service that sends typed requests.
///
/// It connects and reconnects automatically; a request waits for the connection until its deadline.
public final class ServiceClient: Sendable {
    /// The address of the service.
    public let address: EndpointAddress
    let requests: RequestClient

    /// Begins to connect. A service that is not running yet is not an error.
    ///
    /// - Throws: local errors only: no more sockets are available, or the address is invalid
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

    /// Sends a request once, without retrying.
    ///
    /// - Throws: the service's error; `deadline_exceeded`; `connection_lost` if the connection is lost before the
    ///   response, in which case a write may have been committed; `user_cancelled` if the task is cancelled
    public func ask<R: Request>(
        _ request: R,
        attachments: [Bytes] = [],
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> ServiceResponse<R.Result> {
        let reply = try await requests.call(
            R.method,
            request.json,
            attachments: attachments,
            deadline: max(deadline, .milliseconds(1))
        )
        return ServiceResponse(result: try R.result(of: reply.result), attachments: reply.attachments)
    }

    /// Requests a page of identifiers: of assets without their other members.
    ///
    /// - Throws: as ``ask(_:attachments:deadline:)``
    public func identifiers(
        _ request: FetchAssets,
        deadline: Duration
    ) async throws(RPCError) -> (ids: [ObjectID], token: ChangeToken, count: Int) {
        let reply = try await requests.call(
            FetchAssets.method,
            request.json,
            deadline: max(deadline, .milliseconds(1))
        ).result
        let ids = (reply["assets"]?.arrayValue ?? []).compactMap { $0["id"]?.stringValue.flatMap { ObjectID($0) } }
        guard let token = reply["token"]?.stringValue.flatMap({ ChangeToken($0) }), let count = reply["count"]?.intValue
        else { throw ErrorCode.internalError.error("the result of \(FetchAssets.method) has no token or no count") }
        return (ids, token, Int(count))
    }

    /// Requests a page of the change log whose records stay encoded, for callers that forward them.
    ///
    /// - Throws: as ``ask(_:attachments:deadline:)``
    public func encodedPage(
        _ request: ChangesSince,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> EncodedPage {
        let reply = try await requests.encodedCall(
            ChangesSince.method,
            request.json,
            deadline: max(deadline, .milliseconds(1))
        )
        do throws(JSONProblem) {
            return try EncodedPage(parsing: reply.frame, at: reply.range)
        } catch {
            throw ErrorCode.internalError.error("the result of \(ChangesSince.method) cannot be decoded: \(error)")
        }
    }

    /// Returns a request that yields notifications before its response.
    ///
    /// - Parameters:
    ///   - credit: bytes of unread notifications that the service may send ahead; replenished as they are read
    ///   - deadline: nil to wait until the response or until the connection is lost
    public func stream<R: Request>(_ request: R, credit: Int, deadline: Duration? = nil) -> ServiceStream<R> {
        ServiceStream(requests.stream(R.method, request.json, deadline: deadline, credit: credit))
    }

    /// Returns the same stream with undecoded notifications, for callers that forward them.
    public func encodedStream<R: Request>(_ request: R, credit: Int) -> EncodedStream {
        requests.encodedStream(R.method, request.json, credit: credit)
    }

    /// Returns the health of the service.
    public func health(deadline: Duration = .seconds(5)) async throws(RPCError) -> Health.Result {
        try await ask(Health(), deadline: deadline).result
    }

    /// Returns the service's counters and gauges.
    public func metrics(deadline: Duration = .seconds(5)) async throws(RPCError) -> JSONObject {
        try await ask(MetricsRequest(), deadline: deadline).result.members
    }

    /// Returns counters of this connection by name.
    public func connectionMetrics() async -> JSONObject { await requests.metrics() }

    /// Closes the connection. Pending requests end with `connection_lost`.
    public func close() async { await requests.close() }
}

extension Request {
    /// Decodes a result of this request.
    static func result(of json: JSON) throws(RPCError) -> Result {
        do throws(JSONProblem) {
            return try Result(json: json)
        } catch {
            throw ErrorCode.internalError.error("the result of \(method) cannot be decoded: \(error)")
        }
    }
}
