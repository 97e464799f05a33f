import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import SystemPackage

/// Reports published edits: the state of each, and a summary.
struct PublishReporter {
    private let output: Output
    private let isVerbose: Bool
    private let goal: PublishGoal
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var lastDrawn = Duration.zero
    /// The line of each unfinished edit, by edit id; at most `--window` of them.
    private var lines: [String: PendingLine] = [:]

    private struct PendingLine {
        let number: Int
        let asset: ObjectID
        var isAccepted = false
    }

    private(set) var published = 0
    private(set) var accepted = 0
    private(set) var applied = 0
    private(set) var failed = 0
    /// The number of lines that are not valid edits.
    private(set) var broken = 0

    private static let timePerDrawing = Duration.milliseconds(200)
    private static let timePerLine = Duration.seconds(5)

    init(output: Output, isVerbose: Bool, goal: PublishGoal) {
        self.output = output
        self.isVerbose = isVerbose
        self.goal = goal
        self.start = clock.now
    }

    /// The number of edits that have reached the goal.
    var reached: Int { goal == .applied ? applied : accepted }

    /// True if every edit reached the goal.
    var isComplete: Bool { failed == 0 && broken == 0 && lines.isEmpty }

    mutating func recordPublished(_ line: PublishedLine) {
        published += 1
        lines[line.edit.id] = PendingLine(number: line.number, asset: line.edit.asset)
        draw()
    }

    mutating func record(_ failure: CommandFailure) throws {
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

    mutating func record(_ status: EditStatus) throws {
        let edit = status.edit
        let line = lines[edit.id]?.number ?? 0
        var json: JSONObject = [
            "line": JSON(line), "id": .string(edit.id), "asset": .string(edit.asset.text),
            "state": .string(edit.state.rawValue), "sequence": .int(status.sequence),
        ]
        switch edit.state {
        case .accepted:
            accepted += 1
            lines[edit.id]?.isAccepted = true
        case .applied:
            applied += 1
            // It was accepted before, even if this is the first state that was received.
            if lines[edit.id]?.isAccepted == false { accepted += 1 }
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

    private var summary: String {
        var parts = ["\(published) published", "\(accepted) accepted"]
        if goal == .applied { parts.append("\(applied) applied") }
        parts.append("\(failed) failed")
        if broken > 0 { parts.append("\(QuantityFormatter.count(broken, "broken line"))") }
        return parts.joined(separator: ", ")
    }

    private mutating func draw() {
        let now = clock.now - start
        if output.showsProgress {
            guard now - lastDrawn >= Self.timePerDrawing else { return }
            lastDrawn = now
            try? Output.write("\r\u{1B}[K\(summary)", to: .standardError)
        } else if now - lastDrawn >= Self.timePerLine {
            lastDrawn = now
            output.note(summary)
        }
    }

    private func clear() {
        if output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
    }

    /// Prints the summary and the edits that are unfinished.
    func finish(isStopped: Bool) throws {
        clear()
        let elapsed = clock.now - start
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        let open = lines.sorted { $0.value.number < $1.value.number }
        let missing = open.filter { !$0.value.isAccepted }
        if output.isJSON {
            for (id, line) in open {
                try output.json([
                    "line": JSON(line.number), "id": .string(id), "asset": .string(line.asset.text), "state": "open",
                    "isAccepted": .bool(line.isAccepted),
                ])
            }
            return try output.json([
                "summary": [
                    "published": JSON(published), "accepted": JSON(accepted), "applied": JSON(applied),
                    "failed": JSON(failed), "broken": JSON(broken), "open": JSON(open.count),
                    "notAccepted": JSON(missing.count), "seconds": .double(seconds), "isStopped": .bool(isStopped),
                ]
            ])
        }
        try output.line("\(summary) in \(QuantityFormatter.clock(elapsed))")
        guard isStopped else { return }
        if open.count > missing.count {
            output.note(
                "\(QuantityFormatter.count(open.count - missing.count, "edit")) accepted but not finished; the editor still applies them"
            )
        }
        for (id, line) in missing.prefix(isVerbose ? missing.count : Self.maxListed) {
            output.note("not accepted: line \(line.number), edit \(id.printable) of \(line.asset)")
        }
        if !isVerbose, missing.count > Self.maxListed {
            output.note("not accepted: \(missing.count - Self.maxListed) more (--verbose lists all)")
        }
        output.note("stopped before the end; run the command again to publish the rest, nothing is applied twice")
    }

    /// The maximum number of edits that are listed without `--verbose`.
    private static let maxListed = 20
}
