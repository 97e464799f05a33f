import Basics
import JSONValue
import Synchronization

/// An open request, shared by its task, its notifier and the poll thread.
final class OpenRequest: Sendable {
    let incoming: IncomingRequest
    /// Without the notifier, which refers to this object.
    let context: RequestContext
    /// Frames that precede every message to the client: the routing id and REQ's envelope.
    let prefix: [Bytes]
    let signal = CancellationSignal()
    /// The credit that notifications use; nil if the request was opened without credit.
    let credit: ByteSemaphore?
    /// Outbox capacity of the connection and of the server.
    let semaphores: [ByteSemaphore]
    /// Memory reserved for the request.
    private let reservation: RequestReservation?

    init(
        _ incoming: IncomingRequest,
        _ context: RequestContext,
        prefix: [Bytes],
        credit: ByteSemaphore?,
        semaphores: [ByteSemaphore],
        reservation: RequestReservation?
    ) {
        self.incoming = incoming
        self.context = context
        self.prefix = prefix
        self.credit = credit
        self.semaphores = semaphores
        self.reservation = reservation
    }

    /// Reserves capacity for a message in each outbox on its way, waiting if necessary.
    ///
    /// - Returns: the reservation that releases the capacity, or the outcome that prevented it.
    func reserveBytes(_ bytes: Int) async -> Result<ByteReservation, ReservationRefused> {
        var acquired: [ByteSemaphore] = []
        for gate in semaphores {
            var outcome = ByteSemaphore.Outcome.acquired
            let isAcquired = acquired.first.map { gate.tryAcquire(bytes, for: $0) } ?? false
            if !isAcquired { outcome = await gate.acquire(bytes) }
            guard outcome == .acquired else {
                for gate in acquired { gate.release(bytes) }
                return .failure(ReservationRefused(outcome: outcome, isOfAllPeers: !acquired.isEmpty))
            }
            acquired.append(gate)
        }
        return .success(ByteReservation(bytes: bytes, semaphores: acquired))
    }

    /// Reserves capacity without waiting: for small messages that must be sent in any case.
    func reserveBytesWithoutWaiting(_ bytes: Int) -> ByteReservation {
        for gate in semaphores { gate.acquireWithoutWaiting(bytes) }
        return ByteReservation(bytes: bytes, semaphores: semaphores)
    }
}

struct ReservationRefused: Error {
    let outcome: ByteSemaphore.Outcome
    /// True if the outbox of all peers together has no capacity, not that of the request's own peer.
    let isOfAllPeers: Bool

    /// The error of a message that was refused because too many bytes wait.
    ///
    /// - Parameter advice: what the peer can do about its own messages
    func error(_ advice: String) -> RPCError {
        isOfAllPeers
            ? .limitExceeded("too many bytes are queued for all peers of this service together; try again later")
            : .limitExceeded("too many bytes are queued for this peer; \(advice)")
    }
}

// MARK: - The end of a request

/// A one-shot signal that ends a request's task.
final class CancellationSignal: Sendable {
    private struct State {
        var ending: TerminationReason?
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())

    var ending: TerminationReason? { state.withLock { $0.ending } }

    /// Signals the end; only the first call has an effect.
    func cancel(_ ending: TerminationReason) {
        let task: Task<Void, Never>? = state.withLock { state in
            guard state.ending == nil else { return nil }
            state.ending = ending
            defer { state.task = nil }
            return state.task
        }
        if ending != .finished, let task { Self.cancel(task) }
    }

    /// Sets the task to cancel; cancels it at once if the signal was already fired.
    func attach(_ task: Task<Void, Never>) {
        let isOver = state.withLock { state in
            if state.ending == nil { state.task = task }
            return state.ending != nil && state.ending != .finished
        }
        if isOver { Self.cancel(task) }
    }

    /// Cancels on Swift's concurrent executor instead of the caller's thread, because cancelling runs the handlers'
    /// cancellation code.
    private static func cancel(_ task: Task<Void, Never>) { Task.detached { task.cancel() } }
}

/// The reason for the end of a request's task.
enum TerminationReason: Sendable {
    case finished, cancelled, deadline, connectionLost, stopping
}
