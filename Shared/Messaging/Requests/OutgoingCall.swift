import Basics
import JSONValue
import Synchronization

/// A message that a call receives.
enum CallElement: Sendable {
    case notification(method: String, params: JSON, attachments: [Bytes], bytes: Int)
    /// A notification whose params are not parsed.
    case encoded(EncodedNotification, bytes: Int)
    case reply(Reply)
    /// A reply whose result is not parsed.
    case encodedReply(EncodedReply)
}

/// A request from its creation to its response.
final class OutgoingCall: Sendable {
    let id: Int64
    /// The request until it is sent; afterwards only libzmq holds its bytes.
    private let message: Mutex<OutgoingMessage?>
    /// Receives notifications and the response.
    let inbox: Mailbox<CallElement>
    /// When the client gives up waiting for a connection, in microseconds of the system's monotonic clock.
    let deadline: Int64
    /// False if the call fails with ``RPCError/isUnsent`` while there is no connection.
    let waitsForConnection: Bool
    /// True if the caller wants notifications.
    let wantsNotifications: Bool
    /// True if the caller wants notifications, or the result of a call without notifications, unparsed.
    let wantsEncoded: Bool

    init(
        id: Int64,
        message: OutgoingMessage,
        inbox: Mailbox<CallElement>,
        deadline: Int64,
        waitsForConnection: Bool = true,
        wantsNotifications: Bool,
        wantsEncoded: Bool = false
    ) {
        self.id = id
        self.message = Mutex(message)
        self.inbox = inbox
        self.deadline = deadline
        self.waitsForConnection = waitsForConnection
        self.wantsNotifications = wantsNotifications
        self.wantsEncoded = wantsEncoded
    }

    var pending: OutgoingMessage? { message.withLock { $0 } }

    /// Releases the request's bytes.
    func dropMessage() { message.withLock { $0 = nil } }
}

/// A command that callers send to the poll thread.
enum ClientCommand: Sendable {
    case open(OutgoingCall)
    case cancel(OutgoingCall)
    case credit(OutgoingCall, bytes: Int)
}
