import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import SystemPackage

/// Tells about edits that are published: what became of each, and the end in numbers.
struct PublishReport {
    private let output: Output
    private let isVerbose: Bool
    private let goal: PublishGoal
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var lastDrawn = Duration.zero
    /// The line of each edit that is not finished.
    private var lines: [String: Int] = [:]

    private(set) var published = 0
    private(set) var accepted = 0
    private(set) var applied = 0
    private(set) var failed = 0
    /// Lines that were no edit.
    private(set) var broken = 0

    private static let timePerDrawing = Duration.milliseconds(200)
    private static let timePerLine = Duration.seconds(5)

    init(output: Output, isVerbose: Bool, goal: PublishGoal) {
        self.output = output
        self.isVerbose = isVerbose
        self.goal = goal
        self.start = clock.now
    }

    /// Whether every line came as far as was waited for.
    var isComplete: Bool { failed == 0 && broken == 0 && lines.isEmpty }

    mutating func publish(_ line: PublishedLine) {
        published += 1
        lines[line.edit.id] = line.number
        draw()
    }

    mutating func take(_ failure: CommandFailure) throws {
        broken += 1
        guard output.isJSON else {
            clear()
            return output.report(failure)
        }
        try output.json([
            "line": failure.data["line"] ?? .null, "state": "broken",
            "error": ["name": .string(failure.name), "message": .string(failure.message)],
        ])
    }

    mutating func take(_ status: EditStatus) throws {
        let edit = status.edit
        let line = lines[edit.id] ?? 0
        var json: JSONObject = [
            "line": JSON(line), "id": .string(edit.id), "asset": .string(edit.asset.text),
            "state": .string(edit.state.rawValue), "sequence": .int(status.sequence),
        ]
        switch edit.state {
        case .accepted: accepted += 1
        case .applied: applied += 1
        case .failed:
            failed += 1
            json["error"] = [
                "name": .string(edit.errorName ?? ""), "message": .string(edit.errorMessage ?? ""),
            ]
            if !output.isJSON {
                clear()
                output.note(
                    "line \(line): edit \(edit.id.printable) of \(edit.asset) failed: "
                        + "\((edit.errorMessage ?? "").printable) (\((edit.errorName ?? "").printable))"
                )
            }
        }
        if edit.state != .accepted || goal == .accepted { lines[edit.id] = nil }
        if output.isJSON {
            try output.json(.object(json))
        } else if isVerbose, edit.state != .failed {
            clear()
            try output.line(
                "\(edit.state.rawValue)  #\(status.sequence)  line \(line)  \(edit.id.printable)  \(edit.asset)"
            )
        }
        draw()
    }

    private var words: String {
        var words = ["\(published) published", "\(max(accepted, applied)) accepted"]
        if goal == .applied { words.append("\(applied) applied") }
        words.append("\(failed) failed")
        if broken > 0 { words.append("\(Quantities.count(broken, "broken line"))") }
        return words.joined(separator: ", ")
    }

    private mutating func draw() {
        let now = clock.now - start
        if output.showsProgress {
            guard now - lastDrawn >= Self.timePerDrawing else { return }
            lastDrawn = now
            try? Output.write("\r\u{1B}[K\(words)", to: .standardError)
        } else if now - lastDrawn >= Self.timePerLine {
            lastDrawn = now
            output.note(words)
        }
    }

    private func clear() {
        if output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
    }

    /// The end in numbers.
    func finish(isStopped: Bool) throws {
        clear()
        let elapsed = clock.now - start
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        if output.isJSON {
            try output.json([
                "summary": [
                    "published": JSON(published), "accepted": JSON(max(accepted, applied)), "applied": JSON(applied),
                    "failed": JSON(failed), "broken": JSON(broken), "open": JSON(lines.count),
                    "seconds": .double(seconds), "isStopped": .bool(isStopped),
                ]
            ])
        } else {
            try output.line("\(words) in \(Quantities.clock(elapsed))")
        }
        if isStopped, !lines.isEmpty {
            output.note(
                "\(Quantities.count(lines.count, "edit")) left open: what was accepted is applied all the same; "
                    + "run it again to publish the rest"
            )
        }
    }
}
