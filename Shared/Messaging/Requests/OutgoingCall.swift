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
    /// True if the caller wants notifications.
    let wantsNotifications: Bool
    /// True if the caller wants notifications, or the result of a call without notifications, unparsed.
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

    /// Releases the request's bytes.
    func dropMessage() { message.withLock { $0 = nil } }
}

/// A command that callers send to the poll thread.
enum ClientCommand: Sendable {
    case open(OutgoingCall)
    case cancel(OutgoingCall)
    case credit(OutgoingCall, bytes: Int)
}

/// The queue of commands from callers to the poll thread, read in batches. It is bounded by the capacity that each call
/// acquires before.
final class ClientOutbox: Sendable {
    private struct State {
        var commands: [ClientCommand] = []
        var isClosed = false
    }

    /// Capacity for requests that are not sent yet, in bytes.
    let outboxSemaphore: ByteSemaphore
    private let state = Mutex(State())
    private let lastID = Atomic<Int64>(0)
    private let wakeup: PollWakeup

    init(wakeup: PollWakeup, bytes: Int) {
        self.wakeup = wakeup
        self.outboxSemaphore = ByteSemaphore(available: bytes, maxAvailable: bytes)
    }

    func nextID() -> Int64 { lastID.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Appends a command.
    ///
    /// - Returns: `false` if the client is closed.
    @discardableResult
    func post(_ command: ClientCommand) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isClosed else { return false }
            state.commands.append(command)
            return true
        }
        if isTaken { wakeup.signal() }
        return isTaken
    }

    func drain() -> [ClientCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// Closes the queue and returns what was in it.
    func close() -> [ClientCommand] {
        outboxSemaphore.close()
        return state.withLock { state in
            state.isClosed = true
            defer { state.commands = [] }
            return state.commands
        }
    }
}
