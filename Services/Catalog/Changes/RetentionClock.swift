import Basics
import Logging
import ServiceLifecycle
import Synchronization

/// The retention time of the running catalog: follows ``ClockDiscipline`` and logs deviations of the wall clock.
final class RetentionClock: Sendable {
    /// The database counter that stores the last retention time.
    static let counter = "clock.retention"

    private let discipline: Mutex<ClockDiscipline>
    private let wall: @Sendable () -> Int64
    private let monotonic: MonotonicClock
    private let logger: Logger

    init(last: Int64, wall: @escaping @Sendable () -> Int64, monotonic: MonotonicClock, logger: Logger) {
        discipline = Mutex(ClockDiscipline(last: last, monotonic: monotonic.nowMicroseconds()))
        self.wall = wall
        self.monotonic = monotonic
        self.logger = logger
    }

    /// Returns the current retention time in microseconds since 1970.
    func now() -> Int64 {
        let (now, notice) = discipline.withLock { discipline in
            let notice = discipline.observe(wall: wall(), monotonic: monotonic.nowMicroseconds())
            return (discipline.now, notice)
        }
        switch notice {
        case .ahead(let difference):
            logger.warning(
                "the clock is ahead of the elapsed time; retention ignores it for an hour",
                metadata: ["seconds": "\(difference / 1_000_000)"]
            )
        case .accepted(let difference):
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

/// The rule by which the time used for retention follows the wall clock.
///
/// A wall clock that is years ahead at one start must not empty the trash and the history. Retention time therefore
/// continues from the last accepted time by the time that actually passed. If the wall clock differs from that by more
/// than an hour, it is accepted only after the difference has lasted for an hour. An asset that is put into the trash
/// while the clock is behind gets the later of the two times, so that it is not deleted as soon as the clock is right.
/// All times are in microseconds, wall times since 1970.
struct ClockDiscipline: Sendable {
    /// The difference to the elapsed time that is accepted at once.
    static let tolerance: Int64 = 3_600_000_000
    /// The time after which a larger difference is accepted.
    static let acceptanceTime: Int64 = 3_600_000_000

    /// An observation about the wall clock, for the log.
    enum Notice: Sendable, Equatable {
        /// The clock is ahead of the elapsed time, by a number of microseconds, and is not accepted yet.
        case ahead(Int64)
        /// The clock has differed for an hour and is accepted; it is ahead by a number of microseconds.
        case accepted(Int64)
        /// The clock is behind the elapsed time, by a number of microseconds, and is not accepted yet.
        case behind(Int64)
    }

    /// The current retention time.
    private(set) var now: Int64
    private var monotonic: Int64
    /// The difference by which the wall clock is ahead, negative if it is behind, and the monotonic time of its start.
    private var deviation: (ahead: Int64, since: Int64)?

    /// - Parameters:
    ///   - last: the retention time stored before this process started
    ///   - monotonic: the current monotonic time
    init(last: Int64, monotonic: Int64) {
        now = last
        self.monotonic = monotonic
    }

    /// Advances to the current time.
    ///
    /// - Returns: an observation to log, if the wall clock deviates from the elapsed time
    mutating func observe(wall: Int64, monotonic: Int64) -> Notice? {
        now = now.addingReportingOverflow(max(0, monotonic - self.monotonic)).partialValue
        self.monotonic = monotonic
        guard !Self.areClose(wall, now) else {
            (now, deviation) = (wall, nil)
            return nil
        }
        let (difference, overflow) = wall.subtractingReportingOverflow(now)
        let limit = wall < now ? -Int64.max : Int64.max
        let ahead = overflow ? limit : max(difference, -Int64.max)
        guard let deviation, Self.areClose(ahead, deviation.ahead) else {
            self.deviation = (ahead, monotonic)
            return ahead < 0 ? .behind(-ahead) : .ahead(ahead)
        }
        guard monotonic - deviation.since >= Self.acceptanceTime else { return nil }
        (now, self.deviation) = (wall, nil)
        return .accepted(ahead)
    }

    /// Returns true if two times differ by at most the tolerance.
    private static func areClose(_ left: Int64, _ right: Int64) -> Bool {
        let (difference, overflow) = left.subtractingReportingOverflow(right)
        return !overflow && difference.magnitude <= tolerance.magnitude
    }
}

/// The limits for keeping change records and outcomes.
final class RetentionPolicy: Sendable {
    /// The maximum age in microseconds.
    let age: Int64
    /// The maximum size of all records in bytes.
    let bytes: Int
    /// The maximum number of records that one step examines.
    let stepRecords = 64
    /// The maximum size of these records in bytes.
    let stepBytes = 1 << 20
    /// Microseconds between steps if nothing is left to delete.
    let interval: Int64
    private let state = Mutex((nextStep: Int64.min, hasMore: false))

    init(age: Int64 = 30 * 86_400_000_000, bytes: Int = 2 << 30, interval: Int64 = 1_000_000) {
        self.age = age
        self.bytes = bytes
        self.interval = interval
    }

    func isDue(_ now: Int64) -> Bool { state.withLock { $0.nextStep <= now } }

    /// True if the last step left records to delete.
    var hasMore: Bool { state.withLock { $0.hasMore } }

    /// Records the end of a step.
    func noteStep(hasMore: Bool, at now: Int64) {
        state.withLock { $0 = (hasMore ? now : now + interval, hasMore) }
    }
}

/// Makes the changes that depend only on the time, to recently added assets and to the trash: once at the start and
/// then every interval (an hour by default), as transactions of origin `clock`.
struct ScheduledChanges: Service {
    let writer: TransactionWriter
    /// The interval in microseconds.
    let interval: Int64
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await makeDueChanges()
            for await _ in TaskDelay.ticks(every: .microseconds(interval)) { await makeDueChanges() }
        }
    }

    /// The maximum number of assets of one transaction.
    private static let maxAssets = 250

    /// Makes the changes that are due. A transaction that is too large is tried again with fewer assets, so that assets
    /// with large records do not prevent the changes of others.
    func makeDueChanges() async {
        var limit = Self.maxAssets
        var hasMore = true
        while hasMore, !Task.isCancelled {
            do throws(WriteFailure) {
                hasMore = try await writer.perform(.clock(max: limit)).hasMore
                limit = min(Self.maxAssets, limit * 2)
            } catch {
                if error.isTooLarge, limit > 1 {
                    limit = max(1, limit / 4)
                    continue
                }
                // The queue or the disk is full: the next run tries again.
                logger.warning("time-based changes failed; will be retried", metadata: ["error": "\(error)"])
                return
            }
        }
    }
}
