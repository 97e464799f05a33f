public import Basics
public import JSONValue
import Synchronization

/// A request as passed to the handler: its members and limits have been checked, `deadlineMs` and `credit` removed from
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

    /// Returns a reply that needs no waiting, on the poll thread; nil to leave the request, and all of its errors, to
    /// ``handle(_:_:)``.
    ///
    /// This saves two thread switches. All connections wait meanwhile, so it must neither read a file nor block. The
    /// context's notifier sends nothing.
    func replyAtOnce(to request: IncomingRequest, _ context: RequestContext) -> Reply?

    /// Returns the executor that a request's task runs on; nil for Swift's concurrent executor. Called on the poll
    /// thread, on which the executor may run the task until it first waits.
    func executor(for request: IncomingRequest, _ context: RequestContext) -> (any TaskExecutor)?

    /// Returns the limits for requests of a method; they are checked on the poll thread before anything is parsed or
    /// run.
    func limits(of method: String) -> MethodLimits

    /// Returns what the handler knows about the access of an identity, on the poll thread; called once for each
    /// connection. It must not block.
    ///
    /// - Parameter key: the public key of the connection; nil without CURVE
    func cachedPermission(of identity: String, key: String?) -> CachedPermission?

    /// Returns the error that an open or waiting request ends with because its identity has lost access; nil if it may
    /// go on. Called on the poll thread, after ``RequestServer/review(_:)``.
    func reviewError(of method: String, for identity: String, _ cached: CachedPermission?) -> RPCError?

    /// Notes that a connection has ended, on the poll thread. It must not block.
    func connectionEnded(_ connection: ConnectionID)
}

extension RequestHandler {
    /// Returns no limits except those of every message.
    public func limits(of method: String) -> MethodLimits { .unlimited }

    /// Does nothing.
    public func connectionEnded(_ connection: ConnectionID) {}

    /// Returns nil: no access is cached, and the handler decides about each request.
    public func cachedPermission(of identity: String, key: String?) -> CachedPermission? { nil }

    /// Returns nil.
    public func reviewError(of method: String, for identity: String, _ cached: CachedPermission?) -> RPCError? { nil }

    /// Returns nil.
    public func executor(for request: IncomingRequest, _ context: RequestContext) -> (any TaskExecutor)? { nil }

    /// Returns nil.
    public func replyAtOnce(to request: IncomingRequest, _ context: RequestContext) -> Reply? { nil }
}

// MARK: - The reply

/// The result of a request.
public struct Reply: Sendable, Equatable {
    /// The JSON result; null if the result was given in encoded form.
    public var result: JSON
    /// The frames after the JSON frame, in order.
    public var attachments: [Bytes]

    /// The result in encoded form, if it was encoded before; `result` is null then.
    private(set) var encoded: [Bytes]?

    /// Makes a reply from a JSON value.
    public init(_ result: JSON, attachments: [Bytes] = []) {
        self.result = result
        self.attachments = attachments
    }

    /// Makes a reply whose result is already encoded: the text of one JSON value.
    public init(encoded result: Bytes) {
        self.init(encoded: [result])
    }

    /// Makes a reply whose encoded result comes in pieces; they are joined once, in the message.
    public init(encoded pieces: [Bytes]) {
        self.init(.null)
        encoded = pieces
    }

    /// Encodes the response to the request with an id.
    func frame(id: JSON) -> Bytes {
        encoded.map { RPCMessageWriter.result(id: id, encoded: $0) } ?? RPCMessageWriter.result(id: id, result)
    }
}

// MARK: - The context of a request

/// The properties of a request besides its method and parameters, and the sender of its notifications.
public struct RequestContext: Sendable {
    /// The frames after the JSON frame, in order.
    public let attachments: [Bytes]
    /// The connection that the request arrived on.
    public let connection: ConnectionID
    /// The caller's identity: `uid:1000` over ipc, as reported by the kernel; `key:<name>` over CURVE; `loopback` if it
    /// is unknown.
    public let identity: String
    /// The access of the identity as far as the handler knows it; nil if it caches none.
    public let cachedPermission: CachedPermission?
    /// True if the peer can receive notifications before the response; REQ sockets cannot.
    public let acceptsNotifications: Bool
    /// The request's deadline, in microseconds of the server's clock; `Int64.max` for a stream, which ends with its
    /// connection.
    public let deadlineMicroseconds: Int64
    /// The byte credit that the request was opened with; nil if it had none.
    public let credit: Int?
    /// Sends notifications about the request.
    public internal(set) var notifier: Notifier = .silent

    /// Makes a context without a notifier: for tests of handlers, and for ``RequestServer``, which adds the notifier.
    public init(
        attachments: [Bytes] = [],
        connection: ConnectionID = ConnectionID(test: 0),
        identity: String = "loopback",
        cachedPermission: CachedPermission? = nil,
        acceptsNotifications: Bool = true,
        deadlineMicroseconds: Int64 = .max,
        credit: Int? = nil
    ) {
        self.attachments = attachments
        self.connection = connection
        self.identity = identity
        self.cachedPermission = cachedPermission
        self.acceptsNotifications = acceptsNotifications
        self.deadlineMicroseconds = deadlineMicroseconds
        self.credit = credit
    }

    /// Returns the microseconds until shortly before the deadline, so that the client receives a result instead of
    /// `deadline_exceeded`; at most ten minutes.
    ///
    /// - Parameter now: the time of the server's clock
    public func microsecondsToAnswer(at now: Int64) -> Int64 {
        let left = deadlineMicroseconds.subtractingReportingOverflow(now)
        guard !left.overflow else { return 600_000_000 }
        return max(0, min(600_000_000, left.partialValue - min(500_000, left.partialValue / 4)))
    }
}

/// Identifies one connection of one peer, from its first message to its end.
///
/// A peer that reconnects gets a new id.
public struct ConnectionID: Sendable, Hashable {
    /// libzmq's routing id of the peer.
    let routing: Bytes
    /// Distinguishes successive connections with the same routing id.
    let serial: UInt64
}

extension ConnectionID {
    /// Makes an id for tests of handlers.
    public init(test number: UInt64) {
        self.init(routing: [], serial: number)
    }
}

// MARK: - Limits and access

/// The limits for a request of one method.
public struct MethodLimits: Sendable, Equatable {
    /// Maximum size of the JSON frame, in bytes.
    public var maxJSONBytes: Int
    /// True if frames may follow the JSON frame.
    public var takesAttachments: Bool
    /// True if a request may wait for an event: such requests end at once when the service stops, with
    /// `data.isStopping`.
    public var waitsForEvents: Bool
    /// The alternative to a larger message, for the client; part of the errors of requests beyond a limit.
    public var advice: String

    /// The limits of a method that declares none, and of a large request whose method cannot be read before parsing: 1
    /// MiB of JSON and no attachments.
    public static let `default` = MethodLimits()
    /// No limits except those of every message.
    public static let unlimited = MethodLimits(maxJSONBytes: .max, takesAttachments: true)

    /// Makes limits; the default is 1 MiB of JSON without attachments.
    public init(
        maxJSONBytes: Int = 1 << 20,
        takesAttachments: Bool = false,
        waitsForEvents: Bool = false,
        advice: String = "split it into several requests"
    ) {
        self.maxJSONBytes = maxJSONBytes
        self.takesAttachments = takesAttachments
        self.waitsForEvents = waitsForEvents
        self.advice = advice
    }
}

/// The access of one identity as far as a service knows it, shared by the identity's connections: one byte, whose
/// meaning is the handler's. It is read without a lock.
public final class CachedPermission: Sendable {
    private let byte: Atomic<UInt8>

    public init(_ value: UInt8 = 0) { byte = Atomic(value) }

    public var value: UInt8 {
        get { byte.load(ordering: .acquiring) }
        set { byte.store(newValue, ordering: .releasing) }
    }
}
