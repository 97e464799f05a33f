import Basics
import Logging
import Synchronization

/// A log that writes a message at most once a second, with the number of messages suppressed since.
final class ThrottledLog: Sendable {
    private let logger: Logger
    private let clock: MonotonicClock
    private let state = Mutex(LogThrottle())

    init(_ logger: Logger, clock: MonotonicClock = .system) {
        self.logger = logger
        self.clock = clock
    }

    func warning(_ message: Logger.Message, _ metadata: @autoclosure () -> Logger.Metadata) {
        let now = clock.nowMicroseconds()
        guard let count = state.withLock({ $0.count(at: now) }) else { return }
        var metadata = metadata()
        if count > 1 { metadata["others"] = "\(count - 1)" }
        logger.warning(message, metadata: metadata)
    }
}
