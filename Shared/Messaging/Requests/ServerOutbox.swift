import Basics
import JSONValue
import Synchronization

/// The queue of events from tasks to the poll thread, read in batches.
final class ServerOutbox: Sendable {
    private let events = Mutex<[ServerEvent]>([])
    private let wakeup: PollWakeup
    let limits: MessagingLimits

    init(wakeup: PollWakeup, limits: MessagingLimits) {
        self.wakeup = wakeup
        self.limits = limits
    }

    func post(_ event: ServerEvent) {
        events.withLock { $0.append(event) }
        wakeup.signal()
    }

    func drain() -> [ServerEvent] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}

/// An event that tasks send to the poll thread.
enum ServerEvent: Sendable {
    /// A notification about an open request; dropped if the request has been answered meanwhile.
    case notification(OpenRequest, OutgoingMessage)
    /// The response, and the end of the request's task; dropped if the request has been answered meanwhile.
    case answer(OpenRequest, OutgoingMessage, failure: String?)
    /// A large JSON frame has been parsed.
    case parsed(ConnectionID, Envelope, IncomingMessage, prefix: [Bytes])
    /// These public keys were removed from the list.
    case revoked(Set<String>)
    /// The access of these identities has changed.
    case review(Set<String>)
    /// The server must not accept further requests.
    case stop
}
