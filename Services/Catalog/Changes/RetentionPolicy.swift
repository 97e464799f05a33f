import Synchronization

/// The limits for keeping change records and outcomes.
final class RetentionPolicy: Sendable {
    /// The maximum age in microseconds.
    let age: Int64
    /// The maximum size of all records in bytes.
    let bytes: Int
    /// The maximum number of records examined in one step, and their size in bytes.
    let stepRecords = 64
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

    func done(isMore: Bool, at now: Int64) {
        state.withLock { $0 = (isMore ? now : now + interval, isMore) }
    }
}
