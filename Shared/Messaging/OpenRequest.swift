import JSONValue
import Synchronization

/// Why a request's task is to end.
enum RequestEnding: Sendable {
    case finished, cancelled, deadline, connectionLost, stopping
}

/// Told once: ends a request's task.
final class RequestSignal: Sendable {
    private struct State {
        var ending: RequestEnding?
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())

    var ending: RequestEnding? { state.withLock { $0.ending } }

    /// The first call counts.
    func fire(_ ending: RequestEnding) {
        let task: Task<Void, Never>? = state.withLock { state in
            guard state.ending == nil else { return nil }
            state.ending = ending
            defer { state.task = nil }
            return state.task
        }
        if ending != .finished, let task { Self.cancel(task) }
    }

    /// The task that is to be ended.
    func guide(_ task: Task<Void, Never>) {
        let isOver = state.withLock { state in
            if state.ending == nil { state.task = task }
            return state.ending != nil && state.ending != .finished
        }
        if isOver { Self.cancel(task) }
    }

    /// Cancelling runs what others do when they are cancelled: on the pool, not on the thread of whoever tells.
    private static func cancel(_ task: Task<Void, Never>) { Task.detached { task.cancel() } }
}

/// A request under way, as its task, its notifier and the poll thread know it.
final class OpenRequest: Sendable {
    let incoming: IncomingRequest
    /// Frames that go before every answer: the routing id and what REQ wants back.
    let prefix: [Bytes]
    let signal = RequestSignal()
    /// What notifications spend, where the request was opened with credit.
    let credit: ByteGate?
    /// Room in the outbox of its connection, and of the server.
    let rooms: [ByteGate]
    /// What it takes of the memory for requests.
    private let reservation: RequestReservation?

    init(
        _ incoming: IncomingRequest,
        prefix: [Bytes],
        credit: ByteGate?,
        rooms: [ByteGate],
        reservation: RequestReservation?
    ) {
        self.incoming = incoming
        self.prefix = prefix
        self.credit = credit
        self.rooms = rooms
        self.reservation = reservation
    }

    /// Takes room for a message in every outbox it passes, waiting for it.
    ///
    /// - Returns: what gives the room back, or the outcome that stopped it.
    func takeRoom(_ bytes: Int) async -> Result<Charge, RoomRefused> {
        var taken: [ByteGate] = []
        for gate in rooms {
            let outcome = await gate.take(bytes)
            guard outcome == .taken else {
                for gate in taken { gate.give(bytes) }
                return .failure(RoomRefused(outcome: outcome))
            }
            taken.append(gate)
        }
        return .success(Charge(bytes: bytes, gates: taken))
    }

    /// Room for what is small and must be said.
    func takeRoomNow(_ bytes: Int) -> Charge {
        for gate in rooms { gate.takeNow(bytes) }
        return Charge(bytes: bytes, gates: rooms)
    }
}

struct RoomRefused: Error {
    let outcome: ByteGate.Outcome
}

/// What tasks tell the poll thread.
enum ServerEvent: Sendable {
    /// A message about an open request; dropped when the request has been answered meanwhile.
    case notification(OpenRequest, OutgoingMessage)
    /// The one answer, and the end of the request's task; dropped when the request has been answered meanwhile.
    case answer(OpenRequest, OutgoingMessage, failure: String?)
    /// A large JSON frame has been parsed.
    case parsed(ConnectionID, Envelope, IncomingMessage, prefix: [Bytes])
    /// These public keys were taken off the list.
    case revoked(Set<String>)
    /// No further requests are to be taken.
    case stop
}

/// The way from tasks to the poll thread: taken over in batches.
final class ServerOutbox: Sendable {
    private let events = Mutex<[ServerEvent]>([])
    private let doorbell: Doorbell

    init(doorbell: Doorbell) { self.doorbell = doorbell }

    func post(_ event: ServerEvent) {
        events.withLock { $0.append(event) }
        doorbell.ring()
    }

    func drain() -> [ServerEvent] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}
