import Basics
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
    /// The capacity for messages to the client.
    let outbox: ConnectionOutbox
    /// Memory reserved for the request.
    private let reservation: RequestReservation?

    init(
        _ incoming: IncomingRequest,
        _ context: RequestContext,
        prefix: [Bytes],
        credit: ByteSemaphore?,
        outbox: ConnectionOutbox,
        reservation: RequestReservation?
    ) {
        self.incoming = incoming
        self.context = context
        self.prefix = prefix
        self.credit = credit
        self.outbox = outbox
        self.reservation = reservation
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
