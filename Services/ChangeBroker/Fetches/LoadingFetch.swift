import PhotoModel

/// An observed fetch whose keys are being loaded from the catalog. Its changes are collected meanwhile, because the
/// keys belong to a moment that the broker passes before they arrive.
struct LoadingFetch {
    let observation: String
    let fetch: Fetch
    /// The sequence after which the log is complete.
    let oldestComplete: Int64
    private(set) var log: [(sequence: Int64, changes: [NetChange])] = []
    /// Memory for the log, about.
    private(set) var bytes = 0
    private var isGivenUp = false

    /// The maximum memory for the log of one fetch, about.
    static let maxBytes = 4 << 20

    init(observation: String, fetch: Fetch, oldestComplete: Int64) {
        self.observation = observation
        self.fetch = fetch
        self.oldestComplete = oldestComplete
    }

    /// True if the log has all changes after a sequence.
    func isComplete(after sequence: Int64) -> Bool { !isGivenUp && sequence >= oldestComplete }

    /// Appends the changes of one record.
    ///
    /// - Returns: the bytes by which the log has grown; negative if it is given up because it has grown too long
    mutating func append(_ changes: [NetChange], at sequence: Int64) -> Int {
        guard !isGivenUp else { return 0 }
        let added = changes.reduce(64) { $0 + $1.bytes }
        guard bytes + added <= Self.maxBytes else { return -giveUp() }
        log.append((sequence, changes))
        bytes += added
        return added
    }

    /// Forgets the log: the keys have to be loaded again.
    ///
    /// - Returns: the bytes that it took
    mutating func giveUp() -> Int {
        defer { (log, bytes, isGivenUp) = ([], 0, true) }
        return bytes
    }
}
