import Basics
import Contracts
import JSONValue
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

extension QueuedEdit {
    /// Describes the edit and an error of it for the log.
    func metadata(_ error: RPCError) -> Logger.Metadata {
        [
            "edit": "\(key.id)", "publisher": "\(key.publisher)", "asset": "\(edit.asset)",
            "error": "\(error.name)", "message": "\(error.message)",
        ]
    }
}
