/// The time used for retention.
///
/// A wall clock that is years ahead at one start must not empty the trash and the history. Retention time therefore
/// continues from the last accepted time by the time that actually passed. If the wall clock is further ahead than
/// that, it is accepted only after it has stayed so for an hour. A clock that is behind is accepted at once, since
/// waiting loses nothing. All times are in microseconds, wall times since 1970.
struct RetentionClock: Sendable {
    /// The difference to the elapsed time that is accepted at once, and the time that a larger difference must persist.
    static let tolerance: Int64 = 3_600_000_000
    static let proof: Int64 = 3_600_000_000

    /// An observation about the wall clock, for the log.
    enum Notice: Sendable, Equatable {
        /// The clock is ahead of the elapsed time by so many microseconds and is not accepted yet.
        case ahead(Int64)
        /// The clock has been ahead for an hour and is accepted.
        case believed(Int64)
        /// The clock was set back.
        case behind(Int64)
    }

    /// The current retention time.
    private(set) var now: Int64
    private var monotonic: Int64
    /// The difference by which the wall clock is ahead, and the monotonic time since when.
    private var doubt: (ahead: Int64, since: Int64)?

    /// - Parameters:
    ///   - last: the retention time stored before this process started
    ///   - monotonic: the current monotonic time
    init(last: Int64, monotonic: Int64) {
        now = last
        self.monotonic = monotonic
    }

    /// Advances to the current time.
    ///
    /// - Returns: an observation to log, if the wall clock does not agree with the elapsed time
    mutating func observe(wall: Int64, monotonic: Int64) -> Notice? {
        now = now.addingReportingOverflow(max(0, monotonic - self.monotonic)).partialValue
        self.monotonic = monotonic
        let (ahead, overflow) = wall.subtractingReportingOverflow(now)
        if !overflow, ahead <= Self.tolerance {
            (now, doubt) = (wall, nil)
            return ahead < -Self.tolerance ? .behind(-ahead) : nil
        }
        guard let doubt, abs(ahead - doubt.ahead) <= Self.tolerance else {
            self.doubt = (ahead, monotonic)
            return .ahead(ahead)
        }
        guard monotonic - doubt.since >= Self.proof else { return nil }
        (now, self.doubt) = (wall, nil)
        return .believed(ahead)
    }
}
