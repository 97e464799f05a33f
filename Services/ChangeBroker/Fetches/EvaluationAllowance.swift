/// The time that the long evaluations of each identity may take: a counter for each identity that decreases with time.
///
/// A limit for each record would end searches with one large batch, and would not end those that take almost as long
/// with each of many records.
struct EvaluationAllowance {
    /// The divisor of the elapsed time that gives the decrease of the counter.
    private static let share = 10

    /// The maximum time that may be used at once.
    let limit: Duration
    /// The time that each identity had used at a moment.
    private var used: [String: (time: Duration, at: ContinuousClock.Instant)] = [:]

    init(limit: Duration) { self.limit = limit }

    /// Counts the time of an evaluation.
    mutating func count(_ time: Duration, of identities: Set<String>, now: ContinuousClock.Instant) {
        used = used.filter { Self.left($0.value, now) > .zero }
        for identity in identities { used[identity] = (usedTime(of: identity, now) + time, now) }
    }

    /// Returns false if each of some identities has used more than it may.
    func isWithin(_ identities: Set<String>, now: ContinuousClock.Instant) -> Bool {
        identities.isEmpty || identities.contains { usedTime(of: $0, now) <= limit }
    }

    private func usedTime(of identity: String, _ now: ContinuousClock.Instant) -> Duration {
        used[identity].map { Self.left($0, now) } ?? .zero
    }

    private static func left(
        _ counted: (time: Duration, at: ContinuousClock.Instant),
        _ now: ContinuousClock.Instant
    ) -> Duration {
        max(.zero, counted.time - (now - counted.at) / share)
    }
}
