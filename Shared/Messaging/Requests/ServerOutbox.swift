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
