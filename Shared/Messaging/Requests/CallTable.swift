import Basics
import DequeModule
import JSONValue
import Synchronization

/// The calls of one client between request and response. It has no sockets.
struct CallTable {
    /// Calls waiting to be sent, in order; cancelled ones are skipped.
    private(set) var waiting: Deque<OutgoingCall> = []
    /// The open calls by id.
    private var calls: [Int64: OutgoingCall] = [:]
    private var sent: Set<Int64> = []
    /// Cancelled calls whose response has not arrived; the service still counts them as running.
    private var abandoned: Set<Int64> = []
    /// The maximum number of calls without a response.
    let window: Int

    init(window: Int) { self.window = window }

    var openCount: Int { calls.count }

    mutating func add(_ call: OutgoingCall) {
        calls[call.id] = call
        waiting.append(call)
    }

    func isOpen(_ call: OutgoingCall) -> Bool { calls[call.id] != nil }
    func isSent(_ call: OutgoingCall) -> Bool { sent.contains(call.id) }

    /// Returns the next call that may be sent now; nil if there is none.
    mutating func nextToSend() -> OutgoingCall? {
        guard sent.count + abandoned.count < window else { return nil }
        while let first = waiting.first {
            if calls[first.id] != nil { return first }
            waiting.removeFirst()
        }
        return nil
    }

    mutating func markSent(_ call: OutgoingCall) {
        if waiting.first === call { waiting.removeFirst() }
        sent.insert(call.id)
    }

    /// Cancels a call.
    ///
    /// - Returns: true if it was already sent, so that `rpc.cancel` must be sent to the service
    mutating func cancel(_ call: OutgoingCall) -> Bool {
        guard calls.removeValue(forKey: call.id) != nil else { return false }
        guard sent.remove(call.id) != nil else {
            compact()
            return false
        }
        abandoned.insert(call.id)
        return true
    }

    /// Removes the calls that ended before they were sent, once they outnumber the others. Without a connection nothing
    /// else removes them.
    private mutating func compact() {
        guard waiting.count > 64 + 2 * calls.count else { return }
        waiting.removeAll { [calls] call in calls[call.id] == nil }
    }

    /// Removes and returns the call that a response belongs to; nil if no sent call with this id is open.
    mutating func removeSentCall(_ id: Int64) -> OutgoingCall? {
        if abandoned.remove(id) != nil { return nil }
        guard sent.remove(id) != nil else { return nil }
        return calls.removeValue(forKey: id)
    }

    /// Returns the call that a notification belongs to; nil if no sent call with this id is open.
    func sentCall(_ id: Int64) -> OutgoingCall? { sent.contains(id) ? calls[id] : nil }

    /// Removes and returns all sent calls: the connection is lost, so their responses will not arrive.
    mutating func removeSent() -> [OutgoingCall] {
        let lost = sent.compactMap { calls.removeValue(forKey: $0) }
        sent = []
        abandoned = []
        return lost
    }

    /// Removes and returns the calls that are not sent and do not wait for another connection.
    mutating func removeUnsent() -> [OutgoingCall] {
        let unsent = Array(waiting.filter { !$0.waitsForConnection && calls[$0.id] != nil })
        for call in unsent {
            call.dropMessage()
            calls[call.id] = nil
        }
        compact()
        return unsent
    }

    mutating func removeAll() -> [OutgoingCall] {
        let all = Array(calls.values)
        self = CallTable(window: window)
        return all
    }

    /// Returns the calls whose deadline has passed, and the next deadline.
    func expired(_ now: Int64) -> (calls: [OutgoingCall], next: Int64) {
        var expired: [OutgoingCall] = []
        var next = Int64.max
        for call in calls.values {
            if call.deadline <= now { expired.append(call) } else { next = min(next, call.deadline) }
        }
        return (expired, next)
    }
}

// MARK: - A call

/// A request of this client, from its creation to its response.
final class OutgoingCall: Sendable {
    let id: Int64
    /// The bytes of the request.
    let byteCount: Int
    /// The request until it is sent; afterwards only libzmq has its bytes.
    private let message: Mutex<OutgoingMessage?>
    /// Receives notifications and the response.
    let inbox: Mailbox<CallElement>
    /// The time until which the client waits for a connection, in microseconds of the system's monotonic clock. For the
    /// response to a call that was sent it waits a second longer.
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
        waitsForConnection: Bool,
        wantsNotifications: Bool,
        wantsEncoded: Bool = false
    ) {
        self.id = id
        self.byteCount = message.byteCount
        self.message = Mutex(message)
        self.inbox = inbox
        self.deadline = deadline
        self.waitsForConnection = waitsForConnection
        self.wantsNotifications = wantsNotifications
        self.wantsEncoded = wantsEncoded
    }

    /// Attaches the capacity that was acquired for the request. It is released with the message, see
    /// ``OutgoingMessage/reservation``.
    func attach(_ reservation: ByteReservation) { message.withLock { $0?.reservation = reservation } }

    var pending: OutgoingMessage? { message.withLock { $0 } }

    /// Releases the request's bytes.
    func dropMessage() { message.withLock { $0 = nil } }
}

/// A notification or the reply, as the poll thread puts it into the inbox of a call. An error ends the inbox instead.
enum CallElement: Sendable {
    case notification(method: String, params: JSON, attachments: [Bytes], bytes: Int)
    /// A notification whose params are not parsed.
    case encoded(EncodedNotification, bytes: Int)
    case reply(Reply)
    /// A reply whose result is not parsed.
    case encodedReply(EncodedReply)
}
