/// The size of the write-ahead log from which it is written into the database, adapted to the disk.
///
/// A page that many commits of one log change is written once, so a large log costs less in total. But commits wait
/// while it is written, so on a slow disk it is written more often, in smaller parts.
struct CheckpointPace {
    /// The size in pages.
    private(set) var pages: Int
    private let allowed: ClosedRange<Int>
    /// The size of the log that was last recorded with ``recordLogSize(_:)``.
    private var logPages = 0
    /// True if no part of the current log has been written into the database yet.
    private var isUnwritten = true

    /// The maximum time that commits should wait, in microseconds.
    static let maxWait: Int64 = 100_000

    /// - Parameter maxPages: the size on a fast disk; that on the slowest is a sixteenth of it
    init(maxPages: Int) {
        allowed = max(1, maxPages / 16)...max(1, maxPages)
        // A size for a slow disk, until the speed of the disk is known.
        pages = max(1, maxPages / 4)
    }

    /// Records the size of the log; returns true if the log is to be written into the database.
    ///
    /// - Parameter logPages: its size after the last commit
    mutating func recordLogSize(_ logPages: Int) -> Bool {
        // A log that has become shorter was restarted.
        if logPages < self.logPages { isUnwritten = true }
        self.logPages = logPages
        return logPages >= pages
    }

    /// Adapts the size to the duration of a checkpoint. The disk counts as fast only after a checkpoint that wrote a
    /// whole log: others write little, and do not sync while a reader needs a part of the log.
    ///
    /// - Parameters:
    ///   - isWhole: true if the database has the whole log now
    ///   - duration: microseconds
    mutating func checkpointEnded(isWhole: Bool, after duration: Int64) {
        if duration > Self.maxWait {
            pages = max(allowed.lowerBound, pages / 2)
        } else if duration < Self.maxWait / 2, isWhole, isUnwritten {
            pages = min(allowed.upperBound, pages * 2)
        }
        isUnwritten = false
    }
}
