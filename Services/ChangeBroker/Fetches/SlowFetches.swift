import PhotoModel

/// The fetches whose observations were ended because their evaluation takes too long.
struct SlowFetches {
    /// The time for which such a fetch cannot be observed again.
    static let time = Duration.seconds(60)
    /// The maximum number of fetches; beyond it the oldest are removed.
    static let limit = 1000

    /// The times by a hash of the whole fetch, so that a long predicate takes no memory.
    private var times: [Int: ContinuousClock.Instant] = [:]

    mutating func insert(_ fetch: Fetch, now: ContinuousClock.Instant) {
        times = times.filter { now - $0.value < Self.time }
        while times.count >= Self.limit, let first = times.min(by: { $0.value < $1.value }) { times[first.key] = nil }
        times[Self.hash(fetch)] = now
    }

    func contains(_ fetch: Fetch, now: ContinuousClock.Instant) -> Bool {
        !times.isEmpty && times[Self.hash(fetch)].map { now - $0 < Self.time } ?? false
    }

    /// Returns the hash of a fetch, which does not depend on offset and limit.
    private static func hash(_ fetch: Fetch) -> Int { fetch.whole.unscoped.hashValue }
}
