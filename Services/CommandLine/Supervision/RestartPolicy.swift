/// The delay before a service that ended unexpectedly is restarted: none, unless it keeps ending soon after its start.
struct RestartPolicy: Sendable {
    /// A service that ran at least this long counts as healthy.
    static let healthyAfter = Duration.seconds(2)
    static let minDelay = Duration.milliseconds(100)
    static let maxDelay = Duration.seconds(5)

    private(set) var consecutiveFailures = 0

    /// Records that the service ended, and returns the delay before the next start: zero, or 100 ms doubled with each
    /// short run, at most 5 s.
    ///
    /// - Parameter lifetime: the time from its start to its end
    mutating func recordEnd(after lifetime: Duration) -> Duration {
        guard lifetime < Self.healthyAfter else {
            consecutiveFailures = 0
            return .zero
        }
        consecutiveFailures += 1
        let doubled = Self.minDelay * (1 << min(consecutiveFailures - 1, 10))
        return min(doubled, Self.maxDelay)
    }
}
