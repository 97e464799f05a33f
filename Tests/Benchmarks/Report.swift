import Foundation
import JSONValue

/// The number format of the table.
enum NumberFormat {
    static func ratio(_ value: Double) -> String { String(format: value < 0.1 ? "%.3f" : "%.2f", value) }

    /// Returns a number with at least three significant digits.
    static func text(_ value: Double) -> String {
        guard value.isFinite else { return "–" }
        let digits = abs(value) >= 100 ? 0 : abs(value) >= 10 ? 1 : 2
        let plain = String(format: "%.\(digits)f", value)
        guard digits == 0 else { return plain }
        var grouped = ""
        for (index, digit) in plain.reversed().enumerated() {
            if index > 0, index.isMultiple(of: 3), digit != "-" { grouped.append(",") }
            grouped.append(digit)
        }
        return String(grouped.reversed())
    }

    static func spread(_ spread: SampleSummary, _ text: (Double) -> String) -> String {
        "\(text(spread.median)) (\(text(spread.minimum))–\(text(spread.maximum)))"
    }
}

/// A figure without a peer, for example memory or losses.
struct ReportFigure: Sendable {
    var name: String
    var text: String
    var value: Double
    var unit: String
}

/// All measurements, as one table or as JSON.
struct Report {
    var machine: MachineInfo
    var outcomes: [Outcome] = []
    var figures: [ReportFigure] = []
    /// Benchmarks that could not run, and the reasons.
    var gaps: [(name: String, reason: String)] = []

    var markdown: String {
        var lines = [
            "# Safelight benchmarks", "",
            "\(machine.text). Every ratio is A over B, pair by pair in one run; figures are median "
                + "(minimum–maximum). A/A is the noise of the machine; if its spread exceeds half the distance of "
                + "the figure from its aim (or from the peer, if it has none), the result is not resolved.", "",
            "| name | A: ours | B: peer or limit | unit | A | B | A/B | A/A | pairs | load | aim | verdict |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for outcome in outcomes {
            let comparison = outcome.comparison
            let cells = [
                comparison.name, comparison.ours, comparison.peer,
                comparison.unit + (comparison.smallerIsBetter ? " (less is better)" : ""),
                NumberFormat.spread(outcome.ours, NumberFormat.text),
                NumberFormat.spread(outcome.peer, NumberFormat.text),
                NumberFormat.spread(outcome.ratio, NumberFormat.ratio),
                NumberFormat.spread(outcome.same, NumberFormat.ratio),
                "\(outcome.pairs)", outcome.load, comparison.aimText, outcome.verdict.rawValue,
            ]
            lines.append("| " + cells.joined(separator: " | ") + " |")
        }
        let notes = outcomes.flatMap { outcome in outcome.notes.map { "- \(outcome.comparison.name): \($0)" } }
        if !notes.isEmpty { lines += ["", "Notes", ""] + notes }
        if !figures.isEmpty {
            lines += ["", "| figure | value | |", "| --- | --- | --- |"]
            lines += figures.map { "| \($0.name) | \(NumberFormat.text($0.value)) \($0.unit) | \($0.text) |" }
        }
        if !gaps.isEmpty { lines += ["", "Not measured", ""] + gaps.map { "- \($0.name): \($0.reason)" } }
        return lines.joined(separator: "\n") + "\n"
    }

    var json: JSON {
        [
            "machine": .string(machine.text),
            "comparisons": .array(outcomes.map(\.json)),
            "remarks": .array(
                figures.map {
                    [
                        "name": .string($0.name), "value": .double($0.value), "unit": .string($0.unit),
                        "text": .string($0.text),
                    ]
                }
            ),
            "notMeasured": .array(gaps.map { ["name": .string($0.name), "reason": .string($0.reason)] }),
        ]
    }
}

extension SampleSummary {
    var json: JSON { ["median": .double(median), "minimum": .double(minimum), "maximum": .double(maximum)] }
}

extension Outcome {
    var json: JSON {
        [
            "name": .string(comparison.name), "ours": .string(comparison.ours), "peer": .string(comparison.peer),
            "unit": .string(comparison.unit), "smallerIsBetter": .bool(comparison.smallerIsBetter), "a": ours.json,
            "b": peer.json, "ratio": ratio.json, "same": same.json, "pairs": JSON(pairs), "load": .string(load),
            "aim": .string(comparison.aimText), "verdict": .string(verdict.rawValue), "notes": JSON(notes),
        ]
    }
}

/// The machine on which the figures were measured.
struct MachineInfo {
    let text: String

    init() {
        let info = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let model =
            info.split(separator: "\n").first { $0.hasPrefix("model name") }?.split(separator: ":").last?
            .trimmingCharacters(in: .whitespaces) ?? "unknown processor"
        #if DEBUG
            let build = "debug build: figures are meaningless"
        #else
            let build = "release build"
        #endif
        text =
            "\(ProcessInfo.processInfo.activeProcessorCount) cores, \(model), load \(Self.load) at the start, \(build)"
    }

    /// The mean number of runnable processes in the last minute, as text.
    static var load: String {
        ((try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8)) ?? "?").split(separator: " ").first
            .map(String.init) ?? "?"
    }
}
