import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Interruptions of `safelight publish`.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct InterruptedPublishTests {
    private static func line(_ asset: ObjectID, _ exposure: Double) -> String {
        let json: JSON = [
            "asset": .string(asset.text),
            "adjustments": ["version": 1, "operations": [["operation": "exposure", "value": .double(exposure)]]],
        ]
        return json.text + "\n"
    }

    private static func importImage(_ library: PhotoLibrary, seed: UInt64) async throws -> ObjectID {
        try await library.createAsset(TestImages.jpeg(width: 96, height: 64, seed: seed))
    }

    @Test func `ctrl-C reports which edits were accepted, and another run applies the others once`() async throws {
        let services = try SafelightFixture("stopped")
        try services.start()
        let library = try services.library()
        let (first, second) = (
            try await Self.importImage(library, seed: 1), try await Self.importImage(library, seed: 2)
        )
        let lines = [
            Self.line(first, 0.5), Self.line(first, 1), Self.line(second, 0.25), Self.line(second, 0.75), "no json\n",
        ]
        // A named pipe that stays open, so that more lines could follow.
        let pipe = services.folder.file("lines")
        #expect(mkfifo(pipe, 0o600) == 0)
        let writing = try FileHandle(forUpdating: URL(filePath: pipe))
        let running = try RunningProgram("safelight", ["publish", pipe, "--json"], environment: services.environment)
        for line in lines[..<2] { writing.write(Data(line.utf8)) }
        #expect(
            running.wait { $0.outputText.components(separatedBy: #""applied","#).count == 3 },
            "\(running.errorText)"
        )

        // One edit is accepted and cannot be applied, one reaches no editor. The error of the malformed line after them
        // shows that both were read.
        let workers = try await library.editor.workerIdentifiers()
        #expect(!workers.isEmpty)
        for pid in workers { kill(pid, SIGSTOP) }
        writing.write(Data(lines[2].utf8))
        #expect(running.wait { Self.states($0.outputText, 3) == ["accepted"] }, "\(running.outputText)")
        services.killHard(.editor)
        for pid in workers { kill(pid, SIGKILL) }
        for line in lines[3...] { writing.write(Data(line.utf8)) }
        #expect(running.wait { Self.states($0.outputText, 5) == ["broken"] }, "\(running.outputText)")

        let start = ContinuousClock().now
        running.signal(SIGINT)
        #expect(running.wait(seconds: 20) == 3, "\(running.errorText)")
        #expect(ContinuousClock().now - start < .seconds(6))
        #expect(running.wait { $0.outputText.contains("summary") })
        let reported = try running.outputText.split(separator: "\n").map { try JSON(parsing: Array($0.utf8)) }
        let open = reported.filter { $0["state"] == "open" }
        #expect(open.compactMap { $0["line"]?.intValue } == [3, 4])
        #expect(open.compactMap { $0["isAccepted"]?.boolValue } == [true, false])
        let summary = reported.last?["summary"]
        for (name, count) in ["published": 4, "accepted": 3, "applied": 2, "open": 2, "notAccepted": 1, "broken": 1] {
            #expect(summary?[name]?.intValue == Int64(count), "\(name): \(running.outputText)")
        }
        #expect(summary?["isStopped"] == true)

        // The report is correct.
        let ids = open.compactMap { $0["id"]?.stringValue }
        let status = try await library.catalog.ask(EditsStatus(ids: ids)).result
        #expect(status.edits.map(\.edit.id) == [ids[0]])
        #expect(status.unknown == [ids[1]])

        // The same lines again: the remaining edits are applied, and none twice.
        try services.start([.editor])
        let file = try services.folder.write(lines.joined().utf8, to: "lines.jsonl")
        let again = try services.safelight(["publish", file])
        #expect(again.status == 3 && again.output.contains("4 applied"), "\(again.output)\(again.errors)")
        let records = try await library.changeBroker.ask(FeedSince(token: nil, limit: 100)).result.records
            .map { try ChangeRecord(json: $0) }
        #expect(records.flatMap(\.edits).filter { $0.state == .applied }.count == 4)
        await library.close()
        #expect(services.stop() == [])
    }

    private static func states(_ output: String, _ line: Int64) -> [String] {
        output.split(separator: "\n").compactMap { try? JSON(parsing: Array($0.utf8)) }
            .filter { $0["line"]?.intValue == line }.compactMap { $0["state"]?.stringValue }
    }

    @Test func `publishing waits while its output is not read, and its memory does not grow`() async throws {
        let services = try SafelightFixture("slow")
        try services.start()
        let library = try services.library()
        let asset = try await Self.importImage(library, seed: 1)
        // Each malformed line is reported at once in more than a hundred bytes, and the output is not read.
        let lines = String(repeating: "no json\n", count: 400_000) + Self.line(asset, 0.5)
        let file = try services.folder.write(lines.utf8, to: "lines.jsonl")
        let shell = "safelight publish \(file) --json | (sleep 2; cat >/dev/null; echo end)"
        let running = try RunningProgram("/bin/sh", ["-c", shell], environment: services.environment)
        var peak = 0
        while running.isRunning {
            peak = max(peak, Self.peakMemory(named: file))
            try await Task.sleep(for: .milliseconds(50))
        }
        TestPaths.report("publishing to a stalled reader: peak memory \(peak) MiB")
        #expect(running.outputText.contains("end"))
        #expect(peak > 0 && peak < 128)
        #expect(try await library.asset(asset).hasAdjustments)
        await library.close()
        #expect(services.stop() == [])
    }

    /// Returns the peak memory, in MiB, of the `safelight` process that has this argument.
    private static func peakMemory(named argument: String) -> Int {
        for entry in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let process = Int32(entry),
                let line = try? String(contentsOfFile: "/proc/\(entry)/cmdline", encoding: .utf8),
                line.hasPrefix("safelight\0publish\0\(argument)")
            else { continue }
            return ProcessStatus.peakResident(of: process) / 1024
        }
        return 0
    }
}
