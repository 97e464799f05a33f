/// The number of renders in each of the last ten seconds.
struct RenderRate: Sendable {
    static let seconds = 10

    private var counts = [Int](repeating: 0, count: seconds)
    /// The second that each count belongs to.
    private var times = [Int64](repeating: -1, count: seconds)

    /// Counts one render.
    ///
    /// - Parameter microseconds: the current time of a monotonic clock
    mutating func note(at microseconds: Int64) {
        let second = microseconds / 1_000_000
        let place = Int(second % Int64(Self.seconds))
        if times[place] != second {
            times[place] = second
            counts[place] = 0
        }
        counts[place] += 1
    }

    /// Returns the renders per second, averaged over the last ten seconds.
    func perSecond(at microseconds: Int64) -> Double {
        let second = microseconds / 1_000_000
        let total = zip(times, counts).reduce(0) { sum, entry in
            entry.0 >= 0 && second - entry.0 < Int64(Self.seconds) ? sum + entry.1 : sum
        }
        return Double(total) / Double(Self.seconds)
    }
}
