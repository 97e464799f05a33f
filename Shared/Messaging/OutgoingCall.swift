import JSONValue
import Synchronization

/// What comes back for a call.
enum CallElement: Sendable {
    case notification(method: String, params: JSON, attachments: [Bytes], bytes: Int)
    /// One whose params were not read.
    case encoded(EncodedNotification, bytes: Int)
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
    /// Whether they are wanted as they came.
    let wantsEncoded: Bool

    init(
        id: Int64,
        message: OutgoingMessage,
        inbox: Mailbox<CallElement>,
        deadline: Int64,
        wantsNotifications: Bool,
        wantsEncoded: Bool = false
    ) {
        self.id = id
        self.message = Mutex(message)
        self.inbox = inbox
        self.deadline = deadline
        self.wantsNotifications = wantsNotifications
        self.wantsEncoded = wantsEncoded
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
