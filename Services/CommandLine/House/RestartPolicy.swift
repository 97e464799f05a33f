/// When a service that died is started again: at once, unless it keeps dying soon after its start.
struct RestartPolicy: Sendable {
    /// One that lived as long as this is healthy.
    static let healthyAfter = Duration.seconds(2)
    static let shortest = Duration.milliseconds(100)
    static let longest = Duration.seconds(5)

    private(set) var deathsInARow = 0

    /// Counts a death.
    ///
    /// - Parameter lifetime: from start to death
    /// - Returns: how long to wait before the next start
    mutating func pause(after lifetime: Duration) -> Duration {
        guard lifetime < Self.healthyAfter else {
            deathsInARow = 0
            return .zero
        }
        deathsInARow += 1
        let doubled = Self.shortest * (1 << min(deathsInARow - 1, 10))
        return min(doubled, Self.longest)
    }
}
