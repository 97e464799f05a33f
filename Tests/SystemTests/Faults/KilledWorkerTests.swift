import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Hostile names of files, and hostile files whose workers are killed. The tests limit neither times nor memory, so
/// they need not run alone.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(1) > 1 ? 60 : 10)))
struct KilledWorkerTests {
    /// Its files and requests.
    private let hostile = HostileFilesTests()

    @Test func `no file name sends control characters to the terminal`() async throws {
        let services = try SafelightFixture("names")
        try services.start([.catalog])
        // No other output ends in an upper-case Q: identifiers are lower case.
        let name = "Q\n\u{1B}[31mred\u{1B}]0;title\u{07}\u{202E}gpj.jpg"
        let good = try services.folder.write(TestImages.jpeg(seed: 1), to: "p/" + name)
        try services.folder.write(Array("nothing".utf8), to: "p/broken " + name)
        let library = try services.library()
        let id = try await library.createAsset(path: good)
        for arguments in [
            ["import", "-v", services.folder.file("p")], ["import", "--dry-run", services.folder.file("p")],
            ["fetch"], ["show", id.text], ["import", good + "\n.not there"],
        ] {
            let run = try services.safelight(arguments)
            for text in [run.output, run.errors] {
                #expect(!text.unicodeScalars.contains { $0.value == 0x1B || $0.value == 7 || $0.value == 0x202E })
                #expect(!text.contains("\nred") && !text.contains("Q\n"), "\(arguments): \(text)")
            }
            #expect((run.output + run.errors).contains("red"), "\(arguments): \(run)")
        }
        // The log's lines stay whole and free of escapes too.
        #expect(!services.logs.unicodeScalars.contains { $0.value == 0x1B })
        await library.close()
        #expect(services.stop() == [])
    }

    /// Returns the outcomes of each file's import, image and edit, by path.
    private func outcomes(_ files: [String], _ services: SafelightFixture, _ library: PhotoLibrary) async throws
        -> [String: [String]]
    {
        let imported = try services.safelight(["import", "--json", "--parallel", "4", "--"] + files)
        var outcomes: [String: [String]] = [:]
        var assets: [(String, ObjectID)] = []
        for line in imported.output.split(separator: "\n") {
            let json = try JSON(parsing: Array(line.utf8))
            guard let file = json["file"]?.stringValue else { continue }
            #expect(outcomes[file] == nil, "\(file) is reported twice")
            outcomes[file] = [json["error"]?["name"]?.stringValue ?? "imported"]
            if let id = json["id"]?.stringValue.flatMap({ ObjectID($0) }) { assets.append((file, id)) }
        }
        #expect(outcomes.count == files.count, "\(imported.errors)")
        for (file, id) in assets {
            async let image = retry { await hostile.image(id, library) }
            async let edit = retry { await hostile.edit(id, library) }
            outcomes[file]? += [await image ?? "made", await edit ?? "made"]
        }
        return outcomes
    }

    /// Repeats a request that failed because there was temporarily no worker, as the error advises.
    private func retry(_ ask: () async -> String?) async -> String? {
        for _ in 0..<100 {
            let outcome = await ask()
            if outcome != "unavailable" { return outcome }
            try? await Task.sleep(for: .milliseconds(50))
        }
        return "unavailable"
    }

    @Test
    func `killed workers lose no request: each job has the same outcome as without kills, or a named error`()
        async throws
    {
        var random = SeededRandom(named: "hostile files and killed workers")
        let undisturbed = try SafelightFixture("still")
        try undisturbed.start()
        let control = try undisturbed.library()
        let files = try hostile.writeFiles(into: undisturbed.folder).shuffled(using: &random).prefix(40).map { $0 }
        let expected = try await outcomes(files, undisturbed, control)
        await control.close()
        #expect(undisturbed.stop() == [])

        let services = try SafelightFixture("killed")
        try services.start()
        let library = try services.library()
        let clients = [library.catalog, library.thumbnailer, library.editor]
        let killer = Task { [seed = random.next()] in
            var random = SeededRandom(seed: seed)
            var kills = 0
            while !Task.isCancelled {
                let client = random.pick(clients)
                let pids = try? await client.workerIdentifiers()
                if let pids, !pids.isEmpty, kill(random.pick(pids), SIGKILL) == 0 { kills += 1 }
                try? await Task.sleep(for: .milliseconds(Int.random(in: 20...120, using: &random)))
            }
            return kills
        }
        let disturbed = try await outcomes(files, services, library)
        killer.cancel()
        let kills = await killer.value
        var differing = 0
        for (file, outcomes) in disturbed {
            for (index, outcome) in outcomes.enumerated() where outcome != expected[file]?[index] {
                #expect(
                    ["worker_crashed", "quarantined"].contains(outcome),
                    "\(file): \(outcome) of \(expected[file] ?? [])"
                )
                differing += 1
            }
        }
        let list = try await library.catalog.ask(ListQuarantine()).result
        TestPaths.report(
            "\(files.count) hostile files, \(kills) workers killed: \(differing) differ, \(list.count) quarantined"
        )
        // Bytes whose workers were killed twice are quarantined. After the quarantine is lifted all outcomes are as
        // expected.
        for entry in list.resources { _ = try await library.catalog.ask(LiftQuarantine(digest: entry.digest)) }
        let after = try await outcomes(files, services, library)
        for (file, outcomes) in after { #expect(outcomes == expected[file], "\(file)") }
        #expect(
            SafelightFixture.Service.allCases.allSatisfy { services.program($0)?.isRunning == true },
            "\(services.logs)"
        )
        await library.close()
        #expect(services.stop() == [])
    }
}
