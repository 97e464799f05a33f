import Foundation

/// The options that every benchmark receives, and the results that it collects.
final class BenchmarkContext {
    let paths: BenchmarkPaths
    let libraries: GeneratedLibraries
    /// The number of A/B pairs of a comparison.
    let pairs: Int
    /// True for short runs, which show that the benchmarks work, and whose figures are meaningless.
    let isFast: Bool
    let isLarge: Bool
    /// The folder in which generated libraries are stored between runs; nil to generate them in each run.
    let storedLibraries: String?
    /// The prefixes of the selected names; empty for all.
    private let selection: [String]
    private(set) var report = Report(machine: MachineInfo())

    init(paths: BenchmarkPaths, pairs: Int, isFast: Bool, isLarge: Bool, libraries: String? = nil, selection: [String])
    {
        self.paths = paths
        self.libraries = GeneratedLibraries(paths)
        self.pairs = pairs
        self.isFast = isFast
        self.isLarge = isLarge
        self.storedLibraries = libraries
        self.selection = selection
    }

    /// Returns the amount of work: `full`, or `quick` in short runs.
    func amount(_ full: Int, quick: Int) -> Int { isFast ? quick : full }

    /// Returns true if one of the names was selected.
    func includes(_ names: String...) -> Bool {
        selection.isEmpty || names.contains { name in selection.contains { name.hasPrefix($0) } }
    }

    /// Returns true if a group or one of its names was selected, such as `feed.live.10` of `feed`.
    func includes(group: String) -> Bool { includes(group) || selection.contains { $0.hasPrefix(group + ".") } }

    /// Measures comparisons with the same runs, unless only others were selected.
    ///
    /// - Parameter notes: returns notes for the report; called after the runs
    func compare(
        _ comparisons: [Comparison],
        pairs: Int? = nil,
        warmUps: Int = 1,
        ours: Run,
        peer: Run,
        notes: () -> [String] = { [] }
    ) async throws {
        guard comparisons.contains(where: { includes($0.name) }) else { return }
        let names = comparisons.map(\.name).joined(separator: ", ")
        log("measuring \(names)")
        var outcomes = try await measure(
            comparisons,
            pairs: pairs ?? self.pairs,
            warmUps: warmUps,
            ours: ours,
            peer: peer
        )
        outcomes[0].notes = notes()
        for index in outcomes.indices { outcomes[index].load = MachineInfo.load }
        for outcome in outcomes where includes(outcome.comparison.name) {
            report.outcomes.append(outcome)
            log(
                "  \(outcome.comparison.name): A \(NumberFormat.text(outcome.ours.median)), B "
                    + "\(NumberFormat.text(outcome.peer.median)) \(outcome.comparison.unit), ratio "
                    + "\(NumberFormat.ratio(outcome.ratio.median)), \(outcome.verdict.rawValue)"
            )
        }
    }

    func addFigure(_ figure: ReportFigure) { report.figures.append(figure) }

    /// Reports a benchmark that could not run.
    func addGap(_ name: String, _ reason: String) {
        report.gaps.append((name, reason))
        log("  \(name) is not measured: \(reason)")
    }

    func log(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}
