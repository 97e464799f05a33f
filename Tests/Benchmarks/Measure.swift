/// The aim of a comparison.
enum ComparisonTarget: Sendable {
    /// A over B: a minimum, or a maximum if smaller is better.
    case ratio(Double)
    /// A itself.
    case figure(Double)
    /// A itself, or A over B if A does not reach its aim.
    case figureOrRatio(Double, Double)
}

/// A measurement of the project (A) against a named peer or limit (B), in the same run.
struct Comparison: Sendable {
    /// The name that `--only` selects by, for example `requests.one`.
    var name: String
    var ours: String
    var peer: String
    /// The unit of both figures.
    var unit: String
    var smallerIsBetter = false
    var aim: ComparisonTarget?

    /// The aim's text for the table.
    var aimText: String {
        let sign = smallerIsBetter ? "≤" : "≥"
        return switch aim {
        case .ratio(let ratio): "ratio \(sign) \(NumberFormat.ratio(ratio))"
        case .figure(let figure): "A \(sign) \(NumberFormat.text(figure))"
        case .figureOrRatio(let figure, let ratio):
            "A \(sign) \(NumberFormat.text(figure)), or ratio \(sign) \(NumberFormat.ratio(ratio))"
        case nil: "–"
        }
    }
}

/// The median, minimum and maximum of some values.
struct SampleSummary: Sendable {
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

/// The outcome of a comparison, with as many A/B pairs as A/A pairs.
struct Outcome: Sendable {
    enum Verdict: String, Sendable {
        case met, missed
        case notResolved = "not resolved"
        /// The comparison has no aim.
        case noAim = "–"
    }

    let comparison: Comparison
    let ours: SampleSummary
    let peer: SampleSummary
    /// A over B, pair by pair.
    let ratio: SampleSummary
    /// A over A, pair by pair: the noise of the machine.
    let same: SampleSummary
    let pairs: Int
    /// The machine's load when the runs ended, high if something else ran too.
    var load = ""
    /// Notes that explain the figures.
    var notes: [String] = []

    init(_ comparison: Comparison, ours: [Double], peer: [Double], repeated: [Double]) {
        self.comparison = comparison
        self.ours = SampleSummary(ours + repeated)
        self.peer = SampleSummary(peer)
        // In even rounds B is compared with the A before it, in odd rounds with the A after it.
        ratio = SampleSummary(
            peer.indices.map { ($0.isMultiple(of: 2) ? ours[$0] : repeated[$0]) / peer[$0] }
        )
        same = SampleSummary(ours.indices.map { repeated[$0] / ours[$0] })
        pairs = peer.count
    }

    /// The value and its aim. Of two aims it is the one that is met by more, or missed by less.
    private var goal: (value: Double, target: Double) {
        switch comparison.aim {
        case .ratio(let target): return (ratio.median, target)
        case .figure(let target): return (ours.median, target)
        case .figureOrRatio(let figure, let target):
            let byFigure = ours.median / figure
            let byRatio = ratio.median / target
            let isFigure = comparison.smallerIsBetter ? byFigure < byRatio : byFigure > byRatio
            return isFigure ? (ours.median, figure) : (ratio.median, target)
        case nil: return (ratio.median, 1)
        }
    }

    /// True if the spread of A/A is at most half the distance of the figure from its aim, or from the peer if there is
    /// no aim.
    var isResolved: Bool {
        let (value, target) = goal
        // The spread includes 1: a run that always differs from its repetition in the same direction is no more
        // reliable.
        let spread = max(same.maximum, 1) - min(same.minimum, 1)
        return spread * value <= abs(value - target) / 2
    }

    var verdict: Verdict {
        guard comparison.aim != nil else { return isResolved ? .noAim : .notResolved }
        guard isResolved else { return .notResolved }
        let (value, target) = goal
        return (comparison.smallerIsBetter ? value <= target : value >= target) ? .met : .missed
    }
}

/// Runs one side once, and returns a figure for each of the comparisons that are measured together.
typealias Run = () async throws -> [Double]

/// Measures one or several comparisons with the same runs.
///
/// After a warm-up each round runs A, B and A again, so that the pairs A/B and A/A are measured close together.
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
            repeated: second.map { $0[index] }
        )
    }
}

/// Does some work, and returns the seconds that it took.
func seconds(_ work: () async throws -> Void) async rethrows -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    try await work()
    return (clock.now - start).inSeconds
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
