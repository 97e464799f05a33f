/// Measures progress: the number of finished items, the rate and the estimated remaining time.
///
/// The rate is that of the last ten seconds, so that it follows the current speed. Times are since the start; the
/// caller passes them with each step.
struct ProgressMeter: Sendable {
    let total: Int
    private(set) var done = 0
    private(set) var elapsed = Duration.zero
    /// Samples within the window, oldest first.
    private var samples: [(time: Duration, done: Int)] = [(.zero, 0)]

    static let window = Duration.seconds(10)

    init(total: Int) {
        self.total = max(0, total)
    }

    /// Counts one more item.
    mutating func step(at time: Duration) {
        done += 1
        elapsed = max(elapsed, time)
        // One sample every tenth of a second is enough at any speed.
        if let last = samples.last, elapsed - last.time >= .milliseconds(100) { samples.append((elapsed, done)) }
        while samples.count > 1, elapsed - samples[1].time >= Self.window { samples.removeFirst() }
    }

    /// Items per second; nil if there is not enough data yet.
    var rate: Double? {
        guard let first = samples.first, elapsed > first.time, done > first.done else { return nil }
        return Double(done - first.done) / Self.seconds(elapsed - first.time)
    }

    /// The estimated remaining time; nil if there is not enough data yet.
    var remaining: Duration? {
        guard let rate, rate > 0 else { return nil }
        return .seconds(Double(max(0, total - done)) / rate)
    }

    /// The finished part, 0...1; 1 if there are no items.
    var fraction: Double { total == 0 ? 1 : min(1, Double(done) / Double(total)) }

    /// Returns `[######......] 45/100, 12.3/s, 0:04 left`.
    func bar(width: Int) -> String {
        let filled = Int((fraction * Double(width)).rounded(.down))
        let drawn = String(repeating: "#", count: filled) + String(repeating: ".", count: max(0, width - filled))
        return "[\(drawn)] " + line
    }

    /// `45/100, 12.3/s, 0:04 left`
    var line: String {
        "\(done)/\(total)" + (rate.map { ", \(QuantityFormatter.rate($0))/s" } ?? "")
            + (remaining.map { ", \(QuantityFormatter.clock($0)) left" } ?? "")
    }

    private static func seconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}
