import Basics
import Synchronization

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
