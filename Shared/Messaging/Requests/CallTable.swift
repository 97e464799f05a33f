import Basics
import DequeModule
import JSONValue
import Synchronization

/// The calls of one client between request and response. A plain value without sockets.
struct CallTable {
    /// Calls waiting to be sent, in order; cancelled ones are skipped.
    private(set) var waiting: Deque<OutgoingCall> = []
    private var known: [Int64: OutgoingCall] = [:]
    private var sent: Set<Int64> = []
    /// Cancelled calls whose response has not arrived; the service still counts them as running.
    private var abandoned: Set<Int64> = []
    /// The maximum number of calls without a response.
    let window: Int

    init(window: Int) { self.window = window }

    var open: Int { known.count }

    mutating func add(_ call: OutgoingCall) {
        known[call.id] = call
        waiting.append(call)
    }

    func isOpen(_ call: OutgoingCall) -> Bool { known[call.id] != nil }
    func isSent(_ call: OutgoingCall) -> Bool { sent.contains(call.id) }

    /// The next call that may be sent now.
    mutating func nextToSend() -> OutgoingCall? {
        guard sent.count + abandoned.count < window else { return nil }
        while let first = waiting.first {
            if known[first.id] != nil { return first }
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
    /// - Returns: whether it was already sent, so that the service must be sent `rpc.cancel`.
    mutating func cancel(_ call: OutgoingCall) -> Bool {
        guard known.removeValue(forKey: call.id) != nil else { return false }
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
        guard waiting.count > 64 + 2 * known.count else { return }
        waiting.removeAll { [known] call in known[call.id] == nil }
    }

    /// Removes and returns the call that a response belongs to.
    mutating func answered(_ id: Int64) -> OutgoingCall? {
        if abandoned.remove(id) != nil { return nil }
        guard sent.remove(id) != nil else { return nil }
        return known.removeValue(forKey: id)
    }

    /// Returns the call that a notification belongs to.
    func about(_ id: Int64) -> OutgoingCall? { sent.contains(id) ? known[id] : nil }

    /// Removes and returns all sent calls: the connection is lost, so their responses will not arrive.
    mutating func connectionLost() -> [OutgoingCall] {
        let lost = sent.compactMap { known.removeValue(forKey: $0) }
        sent = []
        abandoned = []
        return lost
    }

    /// Removes and returns the calls that are not sent and do not wait for another connection.
    mutating func removeUnsent() -> [OutgoingCall] {
        let unsent = Array(waiting.filter { !$0.waitsForConnection && known[$0.id] != nil })
        for call in unsent {
            call.dropMessage()
            known[call.id] = nil
        }
        compact()
        return unsent
    }

    mutating func removeAll() -> [OutgoingCall] {
        let all = Array(known.values)
        self = CallTable(window: window)
        return all
    }

    /// Returns the calls whose deadline has passed, and the next deadline.
    func expired(_ now: Int64) -> (calls: [OutgoingCall], next: Int64) {
        var calls: [OutgoingCall] = []
        var next = Int64.max
        for call in known.values {
            if call.deadline <= now { calls.append(call) } else { next = min(next, call.deadline) }
        }
        return (calls, next)
    }
}

// MARK: - A call

/// A request from its creation to its response.
final class OutgoingCall: Sendable {
    let id: Int64
    /// The request until it is sent; afterwards only libzmq has its bytes.
    private let message: Mutex<OutgoingMessage?>
    /// Receives notifications and the response.
    let inbox: Mailbox<CallElement>
    /// The time until which the client waits for a connection, in microseconds of the system's monotonic clock; a
    /// second longer for the response to a call that was sent.
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

/// A message that a call receives.
enum CallElement: Sendable {
    case notification(method: String, params: JSON, attachments: [Bytes], bytes: Int)
    /// A notification whose params are not parsed.
    case encoded(EncodedNotification, bytes: Int)
    case reply(Reply)
    /// A reply whose result is not parsed.
    case encodedReply(EncodedReply)
}
