import Basics
import Logging
import Synchronization

/// A log that writes a message at most once a second, with the number of messages suppressed since.
final class ThrottledLog: Sendable {
    private let logger: Logger
    private let clock: MonotonicClock
    private let state = Mutex((next: Int64.min, silent: 0))

    init(_ logger: Logger, clock: MonotonicClock = .system) {
        self.logger = logger
        self.clock = clock
    }

    func warning(_ message: Logger.Message, _ metadata: @autoclosure () -> Logger.Metadata) {
        let now = clock.nowMicroseconds()
        let silent: Int? = state.withLock { state in
            guard now >= state.next else {
                state.silent += 1
                return nil
            }
            defer { state = (now + 1_000_000, 0) }
            return state.silent
        }
        guard let silent else { return }
        var metadata = metadata()
        if silent > 0 { metadata["others"] = "\(silent)" }
        logger.warning(message, metadata: metadata)
    }
}
