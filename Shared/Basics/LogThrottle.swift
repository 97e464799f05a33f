/// Limits a log line to one a second; each line reports the number of events since the line before it.
public struct LogThrottle: Sendable {
    private var lastLine: Int64?
    private var unreported = 0

    /// Makes a throttle whose first event is reported at once.
    public init() {}

    /// Counts one event.
    ///
    /// - Parameter now: microseconds of a monotonic clock
    /// - Returns: the number of events since the last line, this one included, if a line is due; otherwise nil
    public mutating func count(at now: Int64) -> Int? {
        unreported = unreported.addingClamped(1)
        if let lastLine, now < lastLine.addingClamped(1_000_000) { return nil }
        defer { unreported = 0 }
        lastLine = now
        return unreported
    }
}
