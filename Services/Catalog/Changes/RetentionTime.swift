import Basics
import Logging
import Synchronization

/// The ``RetentionClock`` of the running catalog; logs disagreements of the wall clock.
final class RetentionTime: Sendable {
    /// The database counter that stores the last retention time.
    static let counter = "clock.retention"

    private let clock: Mutex<RetentionClock>
    private let wall: @Sendable () -> Int64
    private let monotonic: MonotonicClock
    private let logger: Logger

    init(last: Int64, wall: @escaping @Sendable () -> Int64, monotonic: MonotonicClock, logger: Logger) {
        clock = Mutex(RetentionClock(last: last, monotonic: monotonic.nowMicroseconds()))
        self.wall = wall
        self.monotonic = monotonic
        self.logger = logger
    }

    /// Returns the current retention time in microseconds since 1970.
    func now() -> Int64 {
        let (now, notice) = clock.withLock { clock in
            let notice = clock.observe(wall: wall(), monotonic: monotonic.nowMicroseconds())
            return (clock.now, notice)
        }
        switch notice {
        case .ahead(let difference):
            logger.warning(
                "the clock is ahead of the elapsed time; retention ignores it for an hour",
                metadata: ["seconds": "\(difference / 1_000_000)"]
            )
        case .believed(let difference):
            logger.warning(
                "the clock differed for an hour and is accepted; retention now follows it",
                metadata: ["seconds": "\(difference / 1_000_000)"]
            )
        case .behind(let difference):
            logger.warning(
                "the clock is behind the elapsed time; retention ignores it for an hour",
                metadata: ["seconds": "\(difference / 1_000_000)"]
            )
        case nil: break
        }
        return now
    }
}
