/// How many renders there were in each of the last ten seconds.
struct RenderRate: Sendable {
    static let seconds = 10

    private var counts = [Int](repeating: 0, count: seconds)
    /// The second that each count is of.
    private var times = [Int64](repeating: -1, count: seconds)

    /// Counts one render.
    ///
    /// - Parameter microseconds: now, on a clock that never goes back
    mutating func note(at microseconds: Int64) {
        let second = microseconds / 1_000_000
        let place = Int(second % Int64(Self.seconds))
        if times[place] != second {
            times[place] = second
            counts[place] = 0
        }
        counts[place] += 1
    }

    /// Renders a second, over the last ten.
    func perSecond(at microseconds: Int64) -> Double {
        let second = microseconds / 1_000_000
        let total = zip(times, counts).reduce(0) { sum, entry in
            entry.0 >= 0 && second - entry.0 < Int64(Self.seconds) ? sum + entry.1 : sum
        }
        return Double(total) / Double(Self.seconds)
    }
}
