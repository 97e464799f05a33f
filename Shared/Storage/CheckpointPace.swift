/// The size of the write-ahead log from which it is written into the database, adapted to the disk.
///
/// A page that many commits of one log change is written once, so a large log costs less in all. But commits wait while it
/// is written: on a slow disk it is written more often, and each time less.
struct CheckpointPace {
    /// The size in pages.
    private(set) var pages: Int
    private let allowed: ClosedRange<Int>
    /// The size of the log when it was last looked at.
    private var logPages = 0
    /// True if nothing of the present log has been written into the database yet.
    private var isUnwritten = true

    /// The time in microseconds that commits should wait at most.
    static let longestPause: Int64 = 100_000

    /// - Parameter maxPages: the size on a fast disk; that on the slowest is a sixteenth of it
    init(maxPages: Int) {
        allowed = max(1, maxPages / 16)...max(1, maxPages)
        // Until the disk is known, a size that is bearable on a slow one.
        pages = max(1, maxPages / 4)
    }

    /// Returns true if the log is to be written into the database.
    ///
    /// - Parameter logPages: its size after the last commit
    mutating func isDue(_ logPages: Int) -> Bool {
        // A log that has become shorter was begun anew.
        if logPages < self.logPages { isUnwritten = true }
        self.logPages = logPages
        return logPages >= pages
    }

    /// Learns how long a checkpoint took. The disk counts as fast only after one that wrote a whole log: others write
    /// little, and without a sync while a reader needs a part of the log.
    ///
    /// - Parameters:
    ///   - isWhole: whether the database has the whole log now
    ///   - duration: microseconds
    mutating func checkpointEnded(isWhole: Bool, after duration: Int64) {
        if duration > Self.longestPause {
            pages = max(allowed.lowerBound, pages / 2)
        } else if duration < Self.longestPause / 2, isWhole, isUnwritten {
            pages = min(allowed.upperBound, pages * 2)
        }
        isUnwritten = false
    }
}
