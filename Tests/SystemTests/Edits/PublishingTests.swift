import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Published edits, with the real services and the scripts of `compose/examples`.
///
/// Eighty edits in the short form; `SAFELIGHT_SOAK=13` and more is the long one: 1,000 edits, and twenty kills each of
/// the editor and of the catalog. The seed is printed, and `SAFELIGHT_SEED` repeats a run.
@Suite(.serialized, .timeLimit(.minutes(20)))
struct PublishingTests {
    private static let script = TestPaths.package + "/compose/examples/publish_edits.py"
    private static let scripts = 4

    private static func edits() -> Int { min(1000, TestEnvironment.rounds(80)) }
    private static func kills() -> Int { min(20, TestEnvironment.rounds(2)) }

    /// A published edit and its expected outcome.
    private struct Plan {
        var id: String
        var asset: ObjectID
        var after: String?
        var exposure: Double

        var line: JSON {
            var json: JSONObject = [
                "id": .string(id), "asset": .string(asset.text),
                "adjustments": AdjustmentList(operations: [.exposure(exposure)]).json,
            ]
            if let after { json["after"] = .string(after) }
            return .object(json)
        }
    }

    // MARK: Kills

    @Test func `edits of four scripts are applied exactly once and in order while editor and catalog are killed`()
        async throws
    {
        let python = try Needed.python()
        var random = SeededRandom(named: "published edits")
        let services = try SafelightFixture("publish")
        try services.start()
        let library = try services.library()
        let (assets, originals) = try await Self.images(24, in: library, &random)
        let beginning = try await library.currentToken().token
        let seen = AwaitableValue<[ChangeRecord]>([])
        let watcher = Task {
            for try await event in library.changes(since: beginning) {
                if case .change(let record) = event { seen.withLock { $0.append(record) } }
            }
        }
        defer { watcher.cancel() }

        let plans = Self.plans(assets, &random)
        let start = Date()
        let running = try plans.map { plans in
            try RunningProgram(
                python,
                ["-u", Self.script],
                environment: services.environment,
                input: Data(plans.map { $0.line.text + "\n" }.joined().utf8)
            )
        }
        var kills: [SafelightFixture.Service] = (0..<Self.kills()).flatMap { _ in [.editor, .catalog] }
        kills.shuffle(using: &random)
        var killed = 0
        for service in kills {
            try await Task.sleep(for: .milliseconds(Int.random(in: 10...300, using: &random)))
            if running.contains(where: \.isRunning) { killed += 1 }
            try services.restart(service)
        }
        for program in running {
            #expect(program.wait(seconds: 600) == 0, "\(program.errorText)\n\(program.outputText.suffix(2000))")
        }
        let seconds = Date().timeIntervalSince(start)

        // Every edit that the scripts printed is in the history, once and in order.
        let all = plans.joined().map { $0 }
        let history = try await library.history(after: beginning)
        var states: [String: [(state: PublishedEditState, record: ChangeRecord)]] = [:]
        for record in history {
            for edit in record.edits { states[edit.id, default: []].append((edit.state, record)) }
        }
        #expect(states.count == all.count)
        for plan in all {
            let steps = states[plan.id] ?? []
            #expect(steps.map(\.state) == [.accepted, .applied], "\(plan.id): \(steps.map(\.state))")
            guard let applied = steps.last?.record else { continue }
            #expect(applied.assets.map(\.id) == [plan.asset])
            #expect(applied.assets.first?.isContentChanged == true)
            #expect(applied.origin.onBehalfOf?.hasPrefix("uid:") == true)
            if let after = plan.after, let before = states[after]?.last?.record {
                #expect(before.sequence < applied.sequence, "\(plan.id) precedes \(after)")
            }
        }
        // No other transaction changed an asset.
        #expect(history.filter { !$0.assets.isEmpty }.count == all.count)
        for (plans, program) in zip(plans, running) {
            let lines = program.outputText.split(separator: "\n").map {
                $0.split(separator: " ").prefix(3).joined(separator: " ")
            }
            for plan in plans {
                let sequence = states[plan.id]?.last?.record.sequence ?? 0
                #expect(lines.count { $0 == "\(plan.id) applied \(sequence)" } == 1, "\(plan.id)")
            }
        }
        // The feed delivered the same records, each once.
        await seen.wait { $0.count >= history.count }
        #expect(seen.withLock { $0 }.map(\.bytes) == history.map(\.bytes))
        // Each asset shows its last edit; no original has changed.
        for asset in assets {
            let bytes = try await library.resource(asset: asset).readAll(limit: 1 << 20)
            #expect(bytes == originals[asset])
        }
        // The feed publishes an edit before the editor has the catalog's reply.
        try await waitUntil("the editor is idle") {
            let metrics = try await library.editor.metrics()["published"]
            return metrics?["waiting"] == 0 && metrics?["running"] == 0 && metrics?["ready"] == 0
        }
        TestPaths.report(
            "\(all.count) edits by \(Self.scripts) scripts, \(killed) of \(kills.count) kills while they ran, "
                + "\(history.count) records, \(String(format: "%.1f", seconds)) s"
        )
        await library.close()
        #expect(services.stop() == [])
    }

    private static func images(_ count: Int, in library: PhotoLibrary, _ random: inout SeededRandom) async throws
        -> ([ObjectID], [ObjectID: Bytes])
    {
        try await TestImages.importImages(count, into: library) { _ in
            TestImages.jpeg(width: 96, height: 64, seed: random.next())
        }
    }

    /// Returns the edits of each script: for every asset a chain along `after`.
    private static func plans(_ assets: [ObjectID], _ random: inout SeededRandom) -> [[Plan]] {
        (0..<scripts).map { script in
            var last: [ObjectID: String] = [:]
            return (0..<edits() / scripts).map { index in
                let asset = random.pick(assets)
                let id = "s\(script)-\(index)"
                defer { last[asset] = id }
                return Plan(
                    id: id,
                    asset: asset,
                    after: last[asset],
                    exposure: Double(Int.random(in: -20...20, using: &random)) / 10 + 0.05
                )
            }
        }
    }

    // MARK: The command line

    @Test func `safelight publish chains edits, names each failure, and applies nothing twice`() async throws {
        var random = SeededRandom(named: "safelight publish")
        let services = try SafelightFixture("line")
        try services.start()
        let library = try services.library()
        let assets = try await Self.images(2, in: library, &random).0
        func line(_ asset: String, _ exposure: Double, _ more: JSONObject = [:]) -> String {
            var json: JSONObject = [
                "asset": .string(asset),
                "adjustments": ["version": 1, "operations": [["operation": "exposure", "value": .double(exposure)]]],
            ]
            for (name, value) in more.members { json[name] = value }
            return JSON.object(json).text
        }
        let unknown = "a" + String(repeating: "0", count: 25) + "1"
        let lines = [
            line(assets[0].text, 0.5), line(assets[0].text, 1), "", line(assets[1].text, 0.25),
            line(assets[1].text, 99), "no json", line(unknown, 1), line(assets[1].text, 0.75, ["mode": "append"]),
        ]
        let file = try services.folder.write(lines.joined(separator: "\n").utf8, to: "edits.jsonl")
        let run = try services.safelight(["publish", file, "--json"])
        #expect(run.status == 3, "\(run.errors)")
        let reported = try run.output.split(separator: "\n").map { try JSON(parsing: Array($0.utf8)) }
        func states(_ line: Int) -> [String] {
            reported.filter { $0["line"]?.intValue == Int64(line) }.compactMap { $0["state"]?.stringValue }
                .filter { $0 != "accepted" }
        }
        for number in [1, 2, 4, 8] { #expect(states(number) == ["applied"], "line \(number): \(run.output)") }
        for number in [5, 6] { #expect(states(number) == ["broken"], "line \(number): \(run.output)") }
        let summary = reported.last?["summary"]
        #expect(states(7) == ["failed"])
        #expect(reported.contains { $0["error"]?["name"] == "identifier_not_found" })
        #expect(summary?["published"] == 5 && summary?["applied"] == 4, "\(run.output)")
        #expect(summary?["failed"] == 1 && summary?["broken"] == 2, "\(run.output)")
        let head = try await library.currentToken().token
        let asset = try await library.catalog.ask(FetchAssets(fetch: .init(.assets), count: 10)).result.assets
            .first { $0.id == assets[1] }
        #expect(asset?.hasAdjustments == true)

        // Publishing the same file again applies nothing: every edit is known.
        let again = try services.safelight(["publish", file])
        #expect(again.status == 3)
        #expect(again.output.contains("4 applied"), "\(again.output)")
        #expect(try await library.currentToken().token == head)
        // Under another name they are new edits.
        let other = try services.safelight(["publish", file, "--name", "again", "--until", "accepted"])
        #expect(other.status == 3)
        #expect(try await library.currentToken().token.sequence > head.sequence)
        let status = try services.safelight(["status"])
        #expect(status.output.contains("published edits: "), "\(status.output)")
        #expect(try services.safelight(["publish", "/nowhere"]).status == 1)
        let folder = try services.safelight(["publish", services.folder.path])
        #expect(folder.status == 1 && folder.errors.contains("(not_read)"), "\(folder.errors)")
        #expect(try services.safelight(["publish", "--window", "0"]).status == 2)
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `the shell example publishes, and without an editor safelight publish exits with status 1`() async throws
    {
        var random = SeededRandom(named: "shell example")
        let services = try SafelightFixture("shell")
        try services.start()
        let library = try services.library()
        let assets = try await Self.images(3, in: library, &random).0
        let shell = TestPaths.package + "/compose/examples/publish_edits.sh"
        let run = try RunningProgram.run("/bin/sh", [shell] + assets.map(\.text), environment: services.environment)
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.output.split(separator: "\n").count { $0.hasPrefix("applied ") } == 3, "\(run.output)")

        services.killHard(.editor)
        let file = try services.folder.write(
            #"{"asset": "\#(assets[0].text)", "adjustments": {"version": 1, "operations": []}}"#.utf8,
            to: "one.jsonl"
        )
        let none = try services.safelight(["publish", file, "--wait", "0.5"])
        #expect(none.status == 1, "the editor is not running: \(none.output)")
        await library.close()
        #expect(services.stop() == [])
    }
}
