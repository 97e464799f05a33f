/// What a figure is measured against.
enum Aim: Sendable {
    /// A over B at least, or at most where a smaller figure is the better one.
    case ratio(Double)
    /// A itself.
    case figure(Double)
    /// A itself, or where that is missed A over B.
    case figureOrRatio(Double, Double)
}

/// Ours (A) against a named peer or limit (B), in the same run.
struct Comparison: Sendable {
    /// What `--only` selects by, as in `requests.one`.
    var name: String
    var ours: String
    var peer: String
    /// Of both figures.
    var unit: String
    var smallerIsBetter = false
    var aim: Aim?

    /// The words of the aim for the table.
    var aimText: String {
        let sign = smallerIsBetter ? "≤" : "≥"
        return switch aim {
        case .ratio(let ratio): "ratio \(sign) \(Figure.ratio(ratio))"
        case .figure(let figure): "A \(sign) \(Figure.text(figure))"
        case .figureOrRatio(let figure, let ratio):
            "A \(sign) \(Figure.text(figure)), or ratio \(sign) \(Figure.ratio(ratio))"
        case nil: "–"
        }
    }
}

/// Median with minimum and maximum.
struct Spread: Sendable {
    let median: Double
    let minimum: Double
    let maximum: Double

    init(_ values: [Double]) {
        let sorted = values.sorted()
        minimum = sorted.first ?? .nan
        maximum = sorted.last ?? .nan
        median =
            sorted.isEmpty ? .nan : (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }
}

/// The outcome of a comparison: as many A/B pairs as A/A pairs.
struct Outcome: Sendable {
    enum Verdict: String, Sendable {
        case met, missed
        case notResolved = "not resolved"
        /// There was nothing to reach.
        case noAim = "–"
    }

    let comparison: Comparison
    let ours: Spread
    let peer: Spread
    /// A over B, pair by pair.
    let ratio: Spread
    /// A over A, pair by pair: what the machine does by itself.
    let same: Spread
    let pairs: Int
    /// The machine's load when the runs ended: high where somebody else was at work too.
    var load = ""
    /// What explains the figures.
    var notes: [String] = []

    init(_ comparison: Comparison, ours: [Double], peer: [Double], again: [Double]) {
        self.comparison = comparison
        self.ours = Spread(ours + again)
        self.peer = Spread(peer)
        // Each pair's A stood before its B in even rounds and after it in odd ones.
        ratio = Spread(
            peer.indices.map { ($0.isMultiple(of: 2) ? ours[$0] : again[$0]) / peer[$0] }
        )
        same = Spread(ours.indices.map { again[$0] / ours[$0] })
        pairs = peer.count
    }

    /// A figure and what it is to reach; of two ways the one that is met, else the nearer one.
    private var goal: (value: Double, wanted: Double) {
        switch comparison.aim {
        case .ratio(let wanted): return (ratio.median, wanted)
        case .figure(let wanted): return (ours.median, wanted)
        case .figureOrRatio(let figure, let wanted):
            let byFigure = ours.median / figure
            let byRatio = ratio.median / wanted
            let isFigure = comparison.smallerIsBetter ? byFigure < byRatio : byFigure > byRatio
            return isFigure ? (ours.median, figure) : (ratio.median, wanted)
        case nil: return (ratio.median, 1)
        }
    }

    /// Whether the A/A spread exceeds half of what separates the figure from its aim, or from the peer where it has none.
    var isResolved: Bool {
        let (value, wanted) = goal
        // One that came out differently from itself every time the same way is no better known.
        let spread = max(same.maximum, 1) - min(same.minimum, 1)
        return spread * value <= abs(value - wanted) / 2
    }

    var verdict: Verdict {
        guard comparison.aim != nil else { return isResolved ? .noAim : .notResolved }
        guard isResolved else { return .notResolved }
        let (value, wanted) = goal
        return (comparison.smallerIsBetter ? value <= wanted : value >= wanted) ? .met : .missed
    }
}

/// One run: a rate or a time for each comparison that is measured together, in its unit.
typealias Run = () async throws -> [Double]

/// Measures one or several comparisons that the same runs answer.
///
/// Runs A, B, A again, round by round after a warm-up; so every A/B pair and every A/A pair is of one sitting.
func measure(
    _ comparisons: [Comparison],
    pairs: Int,
    warmUps: Int = 1,
    ours: Run,
    peer: Run
) async throws -> [Outcome] {
    for _ in 0..<warmUps {
        _ = try await ours()
        _ = try await peer()
    }
    var (first, middle, second): ([[Double]], [[Double]], [[Double]]) = ([], [], [])
    for _ in 0..<max(1, pairs) {
        first.append(try await ours())
        middle.append(try await peer())
        second.append(try await ours())
    }
    return comparisons.enumerated().map { index, comparison in
        Outcome(
            comparison,
            ours: first.map { $0[index] },
            peer: middle.map { $0[index] },
            again: second.map { $0[index] }
        )
    }
}

/// Seconds that a piece of work takes.
func seconds(_ work: () async throws -> Void) async rethrows -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    try await work()
    return (clock.now - start).inSeconds
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
