import Foundation

/// The options that every benchmark receives, and the results that it collects.
final class BenchmarkContext {
    let paths: BenchmarkPaths
    let libraries: GeneratedLibraries
    let pairs: Int
    /// True for short forms, which show that all benchmarks run, and whose figures are meaningless.
    let isFast: Bool
    let isLarge: Bool
    /// The folder in which generated libraries are stored between runs; nil to generate them in each run.
    let storedLibraries: String?
    private let only: [String]
    private(set) var report = Report(machine: MachineInfo())

    init(paths: BenchmarkPaths, pairs: Int, isFast: Bool, isLarge: Bool, libraries: String? = nil, only: [String]) {
        self.paths = paths
        self.libraries = GeneratedLibraries(paths)
        self.pairs = pairs
        self.isFast = isFast
        self.isLarge = isLarge
        self.storedLibraries = libraries
        self.only = only
    }

    /// Returns the amount of work: the first one, or the second one in the short form.
    func amount(_ usual: Int, quick: Int) -> Int { isFast ? quick : usual }

    /// Returns true if one of the names was selected.
    func wants(_ names: String...) -> Bool {
        only.isEmpty || names.contains { name in only.contains { name.hasPrefix($0) } }
    }

    /// Returns true if a group or one of its names was selected, such as `feed.live.10` of `feed`.
    func wants(group: String) -> Bool { wants(group) || only.contains { $0.hasPrefix(group + ".") } }

    /// Measures comparisons, unless only others were selected.
    ///
    /// - Parameter notes: called after the runs
    func compare(
        _ comparisons: [Comparison],
        pairs: Int? = nil,
        warmUps: Int = 1,
        ours: Run,
        peer: Run,
        notes: () -> [String] = { [] }
    ) async throws {
        guard comparisons.contains(where: { wants($0.name) }) else { return }
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
        for outcome in outcomes where wants(outcome.comparison.name) {
            report.outcomes.append(outcome)
            log(
                "  \(outcome.comparison.name): A \(NumberFormat.text(outcome.ours.median)), B "
                    + "\(NumberFormat.text(outcome.peer.median)) \(outcome.comparison.unit), ratio "
                    + "\(NumberFormat.ratio(outcome.ratio.median)), \(outcome.verdict.rawValue)"
            )
        }
    }

    func remark(_ remark: ReportNote) { report.remarks.append(remark) }

    func gap(_ name: String, _ reason: String) {
        report.gaps.append((name, reason))
        log("  \(name) is not measured: \(reason)")
    }

    func log(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}
