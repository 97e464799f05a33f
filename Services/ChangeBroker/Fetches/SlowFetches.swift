import PhotoModel

/// The fetches whose observations were given up because their evaluation takes too long.
struct SlowFetches {
    /// How long each is not observed again.
    static let time = Duration.seconds(60)
    /// The most fetches; beyond it those are forgotten that were given up first.
    static let limit = 1000

    /// By a hash of the whole fetch, so that a long predicate takes no memory.
    private var times: [Int: ContinuousClock.Instant] = [:]

    mutating func insert(_ fetch: Fetch, now: ContinuousClock.Instant) {
        times = times.filter { now - $0.value < Self.time }
        while times.count >= Self.limit, let first = times.min(by: { $0.value < $1.value }) { times[first.key] = nil }
        times[Self.hash(fetch)] = now
    }

    func contains(_ fetch: Fetch, now: ContinuousClock.Instant) -> Bool {
        !times.isEmpty && times[Self.hash(fetch)].map { now - $0 < Self.time } ?? false
    }

    /// The same for all windows of a result.
    private static func hash(_ fetch: Fetch) -> Int { fetch.window(offset: 0, limit: 0).unscoped.hashValue }
}
