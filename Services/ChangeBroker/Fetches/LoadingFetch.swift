import PhotoModel

/// An observed result whose keys are being loaded from the catalog. Its changes are collected meanwhile, because the
/// broker receives further records before the keys arrive.
struct LoadingFetch {
    /// The effect of one record on the result.
    struct Entry {
        let sequence: Int64
        var changes: [NetChange] = []
        var isDeleted: Bool?
        /// The whole record, for a fetch whose scope is not known yet.
        var record: ChangeRecord?
        /// The maximum number of steps of the evaluation of the record.
        var steps = 0
    }

    /// The fetch without offset and limit.
    let fetch: Fetch
    /// The sequence after which the log is complete.
    let oldestComplete: Int64
    private(set) var log: [Entry] = []
    /// The approximate memory of the log in bytes.
    private(set) var bytes = 0
    /// The maximum number of steps of the evaluation of all records, which are evaluated together when the keys have
    /// arrived.
    private var steps = 0
    private var isDiscarded = false

    /// The approximate maximum memory of the log of one fetch, in bytes.
    static let maxBytes = 4 << 20
    /// The limit of ``steps``. The evaluation delays all other work: so many steps take about ten milliseconds.
    static let maxSteps = 8 << 20

    init(fetch: Fetch, oldestComplete: Int64) {
        self.fetch = fetch
        self.oldestComplete = oldestComplete
    }

    /// Returns true if the log has all changes after a sequence.
    ///
    /// - Parameter newest: the newest record that the results have been, or are being, updated with. While it is not in
    ///   the log of a fetch with a scope, only some of its entities may have been looked up, and the others would be
    ///   looked up without the scope.
    func isComplete(after sequence: Int64, newest: Int64) -> Bool {
        guard !isDiscarded, sequence >= oldestComplete else { return false }
        return !fetch.needsScope || max(sequence, log.last?.sequence ?? 0) >= newest
    }

    /// Appends the effect of one record.
    ///
    /// - Parameter recordBytes: the memory of the whole record, if the entry has it
    /// - Returns: the bytes by which the log has grown; negative if it was discarded because it had become too long
    mutating func append(_ entry: Entry, recordBytes: Int = 0) -> Int {
        guard !isDiscarded else { return 0 }
        let added = entry.changes.reduce(64 + recordBytes) { $0 + $1.bytes }
        guard bytes + added <= Self.maxBytes, steps + entry.steps <= Self.maxSteps else { return -discard() }
        log.append(entry)
        bytes += added
        steps += entry.steps
        return added
    }

    /// Discards the log: the keys have to be loaded again.
    ///
    /// - Returns: the bytes that it took
    mutating func discard() -> Int {
        defer { (log, bytes, isDiscarded) = ([], 0, true) }
        return bytes
    }
}
