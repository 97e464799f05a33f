import Foundation

/// What every benchmark is given, and where it puts what it found.
final class Bench {
    let place: Place
    let libraries: Libraries
    let pairs: Int
    /// Short forms: to see that everything runs, not to measure.
    let isQuick: Bool
    let isLarge: Bool
    /// Where generated libraries are kept from run to run.
    let keptLibraries: String?
    private let only: [String]
    private(set) var report = Report(machine: Machine())

    init(place: Place, pairs: Int, isQuick: Bool, isLarge: Bool, libraries: String? = nil, only: [String]) {
        self.place = place
        self.libraries = Libraries(place)
        self.pairs = pairs
        self.isQuick = isQuick
        self.isLarge = isLarge
        self.keptLibraries = libraries
        self.only = only
    }

    /// So much work, or a little of it in the short form.
    func amount(_ usual: Int, quick: Int) -> Int { isQuick ? quick : usual }

    /// Whether one of the names is asked for.
    func wants(_ names: String...) -> Bool {
        only.isEmpty || names.contains { name in only.contains { name.hasPrefix($0) } }
    }

    /// Whether one of the names in a group is asked for, or all of them: `feed` has `feed.live.10`.
    func wants(group: String) -> Bool { wants(group) || only.contains { $0.hasPrefix(group + ".") } }

    /// Measures, unless other names were asked for.
    ///
    /// - Parameter notes: asked after the runs
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
        say("measuring \(names)")
        var outcomes = try await measure(
            comparisons,
            pairs: pairs ?? self.pairs,
            warmUps: warmUps,
            ours: ours,
            peer: peer
        )
        outcomes[0].notes = notes()
        for index in outcomes.indices { outcomes[index].load = Machine.load }
        for outcome in outcomes where wants(outcome.comparison.name) {
            report.outcomes.append(outcome)
            say(
                "  \(outcome.comparison.name): A \(Figure.text(outcome.ours.median)), B "
                    + "\(Figure.text(outcome.peer.median)) \(outcome.comparison.unit), ratio "
                    + "\(Figure.ratio(outcome.ratio.median)), \(outcome.verdict.rawValue)"
            )
        }
    }

    func remark(_ remark: Remark) { report.remarks.append(remark) }

    func gap(_ name: String, _ reason: String) {
        report.gaps.append((name, reason))
        say("  \(name) is not measured: \(reason)")
    }

    func say(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}
