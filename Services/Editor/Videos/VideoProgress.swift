import Basics
import Synchronization

/// Sends the progress of a video's render: one message at a time, and one for each percent at most.
final class VideoProgress: Sendable {
    private struct State {
        var sent = 0.0
        var isSending = false
    }

    private let state = Mutex(State())
    private let send: @Sendable (Double) async -> Void

    init(_ send: @escaping @Sendable (Double) async -> Void) { self.send = send }

    /// Sends the progress, unless a message is being sent or less than a percent was added since the last one.
    ///
    /// - Parameter part: the fraction that is rendered, 0...1
    func update(_ part: Double) {
        let isDue = state.withLock { state in
            guard !state.isSending, part >= state.sent + 0.01 else { return false }
            (state.sent, state.isSending) = (part, true)
            return true
        }
        guard isDue else { return }
        Task {
            await send(part)
            state.withLock { $0.isSending = false }
        }
    }
}
