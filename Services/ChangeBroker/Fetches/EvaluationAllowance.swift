/// How much time the long evaluations of each identity may take: a counter by identity that goes down as time passes.
///
/// A limit for each record would end searches with one large batch, and would not end those that take almost as long
/// with each of many records.
struct EvaluationAllowance {
    /// Of the time that passes, one part in so many comes back.
    private static let share = 10

    /// The most time that may be used at once.
    let limit: Duration
    /// By identity the time that it had used at a moment.
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
