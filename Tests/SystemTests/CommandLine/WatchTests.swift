import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// `safelight watch --exec` against the real services.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct WatchTests {
    private func createAlbum(_ library: PhotoLibrary, _ title: String) async throws -> Int64 {
        try await library.perform([.createCollection(.init(ref: "a", title: title))]).sequence
    }

    private func watch(_ services: SafelightFixture, _ arguments: String...) throws -> RunningProgram {
        try RunningProgram("safelight", ["watch"] + arguments, environment: services.environment)
    }

    private func lines(_ path: String) -> [String] {
        ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }

    @Test func `a command receives every change once and in order, across kills of the watch`() async throws {
        let services = try SafelightFixture("watch")
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let (seen, token) = (services.folder.file("seen"), services.folder.file("token"))
        let command = """
            read -r line; [ -n "$line" ] || exit 1
            printf '%s %s %s %s\\n' "$SAFELIGHT_SEQUENCE" "$SAFELIGHT_TOKEN" "$SAFELIGHT_TOPICS" \
            "$(printf %s "$line" | tr -dc '{' | head -c 1)" >>\(seen)
            """
        let arguments = ["--since", "start", "--token-file", token, "--exec", command]
        var program = try RunningProgram("safelight", ["watch"] + arguments, environment: services.environment)
        var last: Int64 = 0
        for round in 0..<6 {
            for number in 0..<8 { last = try await createAlbum(library, "\(round) \(number)") }
            if round < 5 {
                let count = round * 8 + 3
                try await waitUntil("change \(count)") { lines(seen).count >= count }
                program.killHard()
                program = try RunningProgram("safelight", ["watch"] + arguments, environment: services.environment)
            }
        }
        try await waitUntil("the last token") { lines(token).first?.isEmpty == false && lines(seen).count >= last }
        try await waitUntil("the last change") { lines(seen).last?.hasPrefix("\(last) ") == true }
        program.signal(SIGINT)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")

        let sequences = lines(seen).compactMap { $0.split(separator: " ").first.flatMap { Int64($0) } }
        // A change whose command had ended before the kill but was not yet saved is repeated; no other.
        #expect(sequences.count - Set(sequences).count <= 5, "\(sequences)")
        #expect(sequences == sequences.sorted())
        #expect(Set(sequences) == Set(1...last))
        #expect(lines(seen).allSatisfy { $0.hasSuffix(" {") && $0.contains("collection.") })
        #expect(lines(token).first == (try await library.currentToken().token.description))
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a failing command stops the watch with its status and is repeated, or is skipped`() async throws {
        let services = try SafelightFixture("fail")
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        for title in ["one", "two", "three"] { _ = try await createAlbum(library, title) }
        let (seen, token) = (services.folder.file("seen"), services.folder.file("token"))
        let fails = "echo $SAFELIGHT_SEQUENCE >>\(seen); [ $SAFELIGHT_SEQUENCE != 2 ] || exit 7"
        var program = try watch(services, "--since", "start", "--token-file", token, "--exec", fails)
        #expect(program.wait(seconds: 20) == 7)
        #expect(program.errorText.contains("status 7"), "\(program.errorText)")
        #expect(lines(seen) == ["1", "2"])
        program = try watch(
            services,
            "--token-file",
            token,
            "--exec",
            "echo again $SAFELIGHT_SEQUENCE >>\(seen)",
            "--count",
            "2"
        )
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        #expect(lines(seen) == ["1", "2", "again 2", "again 3"])

        // `--exec-failure continue` goes on after any failure; none of these commands reads its input.
        program = try watch(
            services,
            "--since",
            "start",
            "--count",
            "3",
            "--exec-failure",
            "continue",
            "--exec",
            "kill -9 $$"
        )
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        #expect(program.errorText.split(separator: "\n").count { $0.contains("signal 9") } == 3)

        // A command that hangs is ended with all its child processes.
        program = try watch(
            services,
            "--since",
            "start",
            "--count",
            "1",
            "--exec-seconds",
            "1",
            "--exec",
            "sleep 100 & sleep 100"
        )
        #expect(program.wait(seconds: 20) == 124, "\(program.errorText)")
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `ctrl-C lets the command finish, saves its token, and exits successfully`() async throws {
        let services = try SafelightFixture("stop")
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        _ = try await createAlbum(library, "one")
        _ = try await createAlbum(library, "two")
        let (seen, go, token) = (
            services.folder.file("seen"), services.folder.file("go"), services.folder.file("token")
        )
        let command = "echo begin >>\(seen); while [ ! -e \(go) ]; do sleep 0.05; done; echo end >>\(seen)"
        let program = try watch(services, "--since", "start", "--token-file", token, "--exec", command)
        try await waitUntil("the command") { lines(seen) == ["begin"] }
        program.signal(SIGINT)
        try await Task.sleep(for: .milliseconds(200))
        #expect(program.isRunning && lines(seen) == ["begin"])
        _ = FileManager.default.createFile(atPath: go, contents: nil)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        #expect(lines(seen) == ["begin", "end"])
        #expect(lines(token).first?.isEmpty == false)

        // Printed changes are saved too, and a file with other content is left alone.
        let printed = try services.safelight(["watch", "--token-file", token, "--count", "1", "--json"])
        #expect(printed.output.contains(#""sequence":2"#), "\(printed.output)")
        try services.folder.write(Array("precious\n".utf8), to: "mine")
        let refused = try services.safelight(["watch", "--token-file", services.folder.file("mine"), "--count", "1"])
        #expect(refused.status == 1 && refused.errors.contains("contains no token"))
        #expect(lines(services.folder.file("mine")) == ["precious"])
        await library.close()
        #expect(services.stop() == [])
    }

    @Test(.spec("S-63", "S-70"))
    func `the result of a fetch is followed: the list first, then its changes`() async throws {
        let services = try SafelightFixture("list")
        try services.generateLibrary(assets: 30)
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let fetch = ["--fetch", "--where", "rating >= 4", "--sort", "rating:desc", "--limit", "5"]
        let printed = try RunningProgram("safelight", ["watch", "--json"] + fetch, environment: services.environment)
        let seen = services.folder.file("seen")
        let command = "read -r line; printf '%s\\n' \"$SAFELIGHT_SEQUENCE $line\" >>\(seen)"
        let run = try RunningProgram(
            "safelight",
            ["watch", "--exec", command, "--count", "1"] + fetch,
            environment: services.environment
        )
        #expect(printed.waitForOutput("\n"), "\(printed.errorText)")
        try await waitUntil("the first list") { lines(seen).count == 1 }
        var description = FetchDescription(.assets)
        description.predicate = "rating >= 4"
        description.sort = [SortDescription(key: "rating", ascending: false)]
        description.limit = 5
        let ids = try await library.assets(FetchDescription(.assets), count: 100).assets.map(\.id)
        for rating in [5, 4, 0, 5] {
            for id in ids.prefix(4) {
                _ = try await library.perform([.updateAsset(.init(id: .id(id), set: AssetPatch(rating: rating)))])
            }
        }
        let expected = try await library.assets(description, count: 100)
        // Applied in order, the lines give the list.
        func list() throws -> [ObjectID] {
            var list: [ObjectID] = []
            for line in printed.outputText.split(separator: "\n") {
                let json = try JSON(parsing: Array(line.utf8))
                if let details = json["details"] {
                    list = try ChangeDetails(json: details).apply(to: list)
                } else {
                    list = (json["ids"]?.arrayValue ?? []).compactMap { $0.stringValue.flatMap { ObjectID($0) } }
                }
            }
            return list
        }
        #expect(printed.wait { _ in (try? list()) == expected.assets.map(\.id) }, "\(printed.outputText)")
        printed.signal(SIGINT)
        #expect(printed.wait(seconds: 20) == 0, "\(printed.errorText)")
        #expect(run.wait(seconds: 20) == 0, "\(run.errorText)")
        #expect(lines(seen).count == 2 && lines(seen)[0].contains("\"ids\"") && lines(seen)[1].contains("\"details\""))
        let refused = try services.safelight(["watch", "--where", "isFavorite == YES"])
        #expect(refused.status == 2, "\(refused.errors)")
        await library.close()
        #expect(services.stop() == [])
    }
}
