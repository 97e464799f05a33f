/// Limits a log line to one a second; the line reports how many events it counts.
public struct LogThrottle: Sendable {
    private var lastLine: Int64?
    private var since = 0

    /// Makes a throttle whose first event is reported at once.
    public init() {}

    /// Counts one event.
    ///
    /// - Parameter now: microseconds of a monotonic clock
    /// - Returns: the number of events since the last line, this one included, if a line is due; otherwise nil
    public mutating func count(at now: Int64) -> Int? {
        since = since.addingClamped(1)
        if let lastLine, now < lastLine.addingClamped(1_000_000) { return nil }
        defer { since = 0 }
        lastLine = now
        return since
    }
}
