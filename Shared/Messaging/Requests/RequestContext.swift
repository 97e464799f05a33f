public import Basics

/// The properties of a request besides its method and parameters, and the sender of its notifications.
public struct RequestContext: Sendable {
    /// The frames after the JSON frame, in order.
    public let attachments: [Bytes]
    /// The connection that the request arrived on.
    public let connection: ConnectionID
    /// The caller's identity: `uid:1000` over ipc, as reported by the kernel; `key:<name>` over CURVE; `loopback` if it
    /// is unknown.
    public let identity: String
    /// The access of the identity as far as the handler knows it; nil if it keeps none.
    public let cachedPermission: CachedPermission?
    /// True if the peer can receive notifications before the response; REQ sockets cannot.
    public let acceptsNotifications: Bool
    /// When the request's deadline passes, in microseconds of the server's clock; `Int64.max` for a stream, which ends
    /// with its connection.
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

    /// Returns the microseconds until shortly before the deadline, so that the client receives an answer instead of
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
