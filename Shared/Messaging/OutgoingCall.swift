import DequeModule
import JSONValue
import Synchronization

/// What comes back for a call.
enum CallElement: Sendable {
    case notification(method: String, params: JSON, attachments: [Bytes], bytes: Int)
    case reply(Reply)
}

/// A request on its way and until its answer.
final class OutgoingCall: Sendable {
    let id: Int64
    /// The request until it is sent; then only libzmq holds its bytes.
    private let message: Mutex<OutgoingMessage?>
    /// Where answers go.
    let inbox: Mailbox<CallElement>
    /// When this side gives up waiting for a connection, in microseconds on the system's clock.
    let deadline: Int64
    /// Whether notifications are wanted.
    let wantsNotifications: Bool

    init(
        id: Int64,
        message: OutgoingMessage,
        inbox: Mailbox<CallElement>,
        deadline: Int64,
        wantsNotifications: Bool
    ) {
        self.id = id
        self.message = Mutex(message)
        self.inbox = inbox
        self.deadline = deadline
        self.wantsNotifications = wantsNotifications
    }

    var pending: OutgoingMessage? { message.withLock { $0 } }

    /// Lets go of the request's bytes.
    func dropMessage() { message.withLock { $0 = nil } }
}

/// What callers tell the poll thread.
enum ClientCommand: Sendable {
    case open(OutgoingCall)
    case takeBack(OutgoingCall)
    case credit(OutgoingCall, bytes: Int)
}

/// The way from callers to the poll thread, taken over in batches; its bound is the room that each call takes before.
final class ClientOutbox: Sendable {
    private struct State {
        var commands: [ClientCommand] = []
        var isClosed = false
    }

    /// Room for requests that are not sent yet.
    let room: ByteGate
    private let state = Mutex(State())
    private let lastID = Atomic<Int64>(0)
    private let doorbell: Doorbell

    init(doorbell: Doorbell, bytes: Int) {
        self.doorbell = doorbell
        self.room = ByteGate(available: bytes, ceiling: bytes)
    }

    func nextID() -> Int64 { lastID.wrappingAdd(1, ordering: .relaxed).newValue }

    /// - Returns: `false` when the client is closed.
    @discardableResult
    func post(_ command: ClientCommand) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isClosed else { return false }
            state.commands.append(command)
            return true
        }
        if isTaken { doorbell.ring() }
        return isTaken
    }

    func drain() -> [ClientCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// Takes nothing more; hands out what was there.
    func close() -> [ClientCommand] {
        room.close()
        return state.withLock { state in
            state.isClosed = true
            defer { state.commands = [] }
            return state.commands
        }
    }
}

/// The calls of one client between sending and answer: values only, no sockets.
struct CallTable {
    /// Waiting to be sent, in order; calls that were taken back meanwhile are skipped.
    private var waiting: Deque<OutgoingCall> = []
    private var known: [Int64: OutgoingCall] = [:]
    private var sent: Set<Int64> = []
    /// Taken back, their answer still to come; they count as under way for the service.
    private var abandoned: Set<Int64> = []
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

    /// - Returns: whether the service knows of it, so that it must be told.
    mutating func takeBack(_ call: OutgoingCall) -> Bool {
        guard known.removeValue(forKey: call.id) != nil else { return false }
        guard sent.remove(call.id) != nil else { return false }
        abandoned.insert(call.id)
        return true
    }

    /// The call that a response ends.
    mutating func answered(_ id: Int64) -> OutgoingCall? {
        if abandoned.remove(id) != nil { return nil }
        guard sent.remove(id) != nil else { return nil }
        return known.removeValue(forKey: id)
    }

    /// The call that a notification is about.
    func about(_ id: Int64) -> OutgoingCall? { sent.contains(id) ? known[id] : nil }

    /// The connection is gone, and with it every answer.
    mutating func connectionLost() -> [OutgoingCall] {
        let lost = sent.compactMap { known.removeValue(forKey: $0) }
        sent = []
        abandoned = []
        return lost
    }

    mutating func removeAll() -> [OutgoingCall] {
        let all = Array(known.values)
        self = CallTable(window: window)
        return all
    }

    /// The calls whose time is up, and the moment of the next.
    func expired(_ now: Int64) -> (calls: [OutgoingCall], next: Int64) {
        var calls: [OutgoingCall] = []
        var next = Int64.max
        for call in known.values {
            if call.deadline <= now { calls.append(call) } else { next = min(next, call.deadline) }
        }
        return (calls, next)
    }
}
