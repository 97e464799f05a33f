/// The time by which old things are forgotten.
///
/// A wall clock that is wrong at one start, years ahead, must not empty the trash and the history. So this goes on from
/// the moment that was last believed, by the time that passed; where the wall clock is further ahead than that, it is
/// believed only after it has stayed so for an hour. A clock that is behind is believed at once: nothing is lost by
/// waiting. All times in microseconds, wall times since 1970.
struct RetentionClock: Sendable {
    /// A difference to the time that passed that is believed at once, and how long a larger one must stay.
    static let tolerance: Int64 = 3_600_000_000
    static let proof: Int64 = 3_600_000_000

    /// What was noticed about the wall clock, for the log.
    enum Notice: Sendable, Equatable {
        /// It is ahead of the time that passed, and not believed yet.
        case ahead(Int64)
        /// It has been ahead for an hour, and is believed.
        case believed(Int64)
        /// It was set back.
        case behind(Int64)
    }

    /// The present moment, as far as it is believed.
    private(set) var now: Int64
    private var monotonic: Int64
    /// How far the wall clock is ahead, and since when it has been.
    private var doubt: (ahead: Int64, since: Int64)?

    /// - Parameters:
    ///   - last: the moment that was believed last, before this process
    ///   - monotonic: the monotonic clock, now
    init(last: Int64, monotonic: Int64) {
        now = last
        self.monotonic = monotonic
    }

    /// Moves on to the present.
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
