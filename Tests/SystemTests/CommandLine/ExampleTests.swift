import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The programs of `compose/examples`, run as a user runs them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ExampleTests {
    private func lines(of script: String) throws -> Int {
        try String(contentsOfFile: TestPaths.package + "/compose/examples/" + script, encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: true)
            .count { !$0.trimmingCharacters(in: .whitespaces).hasPrefix("#") }
    }

    @Test func `a REQ script of under fifteen lines saves an image of each of the five newest photos`() throws {
        let python = try Needed.python()
        #expect(try lines(of: "newest_five.py") < 15)
        let services = try SafelightFixture("five")
        for day in 1...7 {
            try services.folder.write(
                TestImages.jpeg(width: 800, height: 600, date: "2024:06:0\(day) 12:00:00", seed: UInt64(day)),
                to: "photos/\(day).jpg"
            )
        }
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        var environment = services.environment
        environment["SAFELIGHT_OUTPUT"] = services.folder.file("out")
        try FileManager.default.createDirectory(
            atPath: services.folder.file("out"),
            withIntermediateDirectories: true
        )
        let script = TestPaths.package + "/compose/examples/newest_five.py"
        let shell = "cd \(services.folder.file("out")) && exec \(python) \(script)"
        let run = try RunningProgram.run("/bin/sh", ["-c", shell], environment: environment)
        #expect(run.status == 0, "\(run.errors)")
        let pictures = try FileManager.default.contentsOfDirectory(atPath: services.folder.file("out"))
        #expect(pictures.count == 5)
        for image in pictures {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: services.folder.file("out/" + image)))
            #expect(bytes.starts(with: [0xFF, 0xD8]))
        }
        #expect(services.stop() == [])
    }

    @Test func `the Swift program follows an album through a broker restart`() throws {
        let services = try SafelightFixture("follow-album")
        for number in 1...2 {
            let image = TestImages.jpeg(width: 64, height: 48, seed: UInt64(number))
            try services.folder.write(image, to: "photos/\(number).jpg")
        }
        try services.start()
        func safelight(_ arguments: String...) throws {
            let run = try services.safelight(arguments)
            try #require(run.status == 0, "\(run.errors)")
        }
        try safelight("import", services.folder.file("photos"))
        try safelight("album", "create", "Holidays")
        try safelight("album", "add", "Holidays", "1.jpg")
        let program = TestPaths.executables + "/FollowAlbum"
        let unknown = try RunningProgram.run(program, ["Work"], environment: services.environment)
        #expect(unknown.status == 1 && unknown.output == "there is no album Work\n")

        let run = try RunningProgram(program, ["Holidays"], environment: services.environment)
        var expected = "  1.jpg\nfollowing Holidays\n"
        func expect(_ line: String) {
            expected += line
            _ = run.wait(seconds: 30) { $0.outputText.count >= expected.count }
            #expect(run.outputText == expected, "\(run.errorText)")
        }
        expect("")
        try safelight("album", "add", "Holidays", "2.jpg")
        expect("+ 2.jpg\n")
        try services.restart(.changeBroker)
        try safelight("favorite", "1.jpg")
        expect("* 1.jpg\n")
        try safelight("edit", "2.jpg", "--exposure", "0.3")
        expect("e 2.jpg\n")
        try safelight("album", "remove", "Holidays", "1.jpg")
        expect("- 1.jpg\n")
        run.killHard()
        #expect(services.stop() == [])
    }

    @Test func `a subscriber of under thirty lines prints every change once through a broker restart`() async throws {
        let python = try Needed.python()
        #expect(try lines(of: "follow_changes.py") < 30)
        let services = try SafelightFixture("follow")
        let path = try services.folder.write(TestImages.jpeg(seed: 9), to: "a.jpg")
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let created = try await library.perform(
            [.createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))])
        let asset = try #require(created.id("a"))
        let script = try RunningProgram(
            python,
            ["-u", TestPaths.package + "/compose/examples/follow_changes.py"],
            environment: services.environment
        )
        #expect(script.waitForOutput("1 "), "\(script.errorText)")
        for index in 0..<60 {
            _ = try await library.perform(
                [.updateAsset(.init(id: .id(asset), set: AssetPatch(caption: .some("\(index)"))))])
            if index == 20 || index == 40 { services.killHard(.changeBroker) }
            if index == 25 || index == 45 { try services.start([.changeBroker]) }
        }
        #expect(script.waitForOutput("\n61 ", seconds: 60), "\(script.outputText)\n\(script.errorText)")
        let numbers = script.outputText.split(separator: "\n").compactMap { $0.split(separator: " ").first }
            .compactMap { Int($0) }
        #expect(numbers == Array(1...61))
        script.killHard()
        await library.close()
        #expect(services.stop() == [])
    }

    @Test(.spec("S-63", "S-70", "P-04"))
    func `a subscriber of under forty lines keeps a list exactly right through broker restarts`() async throws {
        let python = try Needed.python()
        #expect(try lines(of: "live_fetch.py") < 40)
        try await withGeneratedLibrary { services, library, ids in
            var environment = services.environment
            environment["FETCH"] = """
                {"predicate": "rating >= 2", "sort": [{"key": "rating", "ascending": false}], "limit": 7, "offset": 2}
                """
            let script = TestPaths.package + "/compose/examples/live_fetch.py"
            let program = try RunningProgram(python, ["-u", script], environment: environment)
            defer { program.killHard() }
            #expect(program.waitForOutput("\n"), "\(program.errorText)")
            try await Self.change(ids, library, services) {
                // The broker has sent all differences so far, and each of them is a printed list.
                let current = try await Self.expectedList(library).map(\.text)
                let isCurrent = program.wait(seconds: 30) { Self.lists($0).last == current }
                #expect(isCurrent, "\(program.outputText.suffix(2000))\n\(program.errorText)")
            }
            let expectedList = try await Self.expectedList(library).map(\.text)
            let isRight = program.waitForOutput(expectedList.joined(separator: " ") + "\n", seconds: 30)
            #expect(isRight, "\(program.outputText.suffix(2000))\n\(program.errorText)")
            // Every printed line is a list, never longer than the limit, and differs from the line before.
            let lists = Self.lists(program)
            #expect(lists.allSatisfy { $0.count <= 7 } && lists.count > 10)
        }
    }

    @Test func `the Python package follows changes and keeps live lists current, blocking and with asyncio`()
        async throws
    {
        let python = try Needed.python()
        try await withGeneratedLibrary { services, library, ids in
            let script = try services.folder.write(Array(Self.follower.utf8), to: "follower.py")
            let programs = try ["blocking", "asyncio"].map { kind in
                try RunningProgram(python, ["-u", script, kind], environment: Self.environment(of: services))
            }
            defer { for program in programs { program.killHard() } }
            for program in programs {
                #expect(program.waitForOutput("changes") && program.waitForOutput("live"), "\(program.errorText)")
            }
            let start = try await library.currentToken().token
            try await Self.change(ids, library, services)
            let end = try await library.currentToken().token.sequence
            let expectedList = try await Self.expectedList(library).map(\.text)
            for program in programs {
                #expect(program.waitForOutput("change \(end)\n", seconds: 30), "\(program.errorText)")
                #expect(program.waitForOutput("list " + expectedList.joined(separator: " ") + "\n", seconds: 30))
                let reported = program.outputText.split(separator: "\n").filter { $0.hasPrefix("change ") }
                    .compactMap { Int64($0.dropFirst(7)) }
                #expect(reported == Array(start.sequence + 1...end), "\(program.outputText.suffix(2000))")
            }
        }
    }

    @Test func `the state machines of the Python package pass their own tests`() throws {
        let python = try Needed.python()
        let folder = TestPaths.package + "/Shared/python"
        let run = try RunningProgram.run(
            python,
            ["-B", "-m", "unittest", "discover", "-s", folder + "/tests"],
            environment: PythonPackage.environment
        )
        #expect(run.status == 0, "\(run.errors)")
        TestPaths.report(run.errors.split(separator: "\n").filter { $0.hasPrefix("Ran") }.joined())
    }

    // MARK: Helpers

    private static func environment(of services: SafelightFixture) -> [String: String] {
        services.environment.merging(PythonPackage.environment) { $1 }.merging(["PYTHONDONTWRITEBYTECODE": "1"]) { $1 }
    }

    private static let fetch = """
        {"predicate": "rating >= 2", "sort": [{"key": "rating", "ascending": False}], "limit": 7, "offset": 2}
        """

    /// Prints every change and every list, from two threads or two tasks.
    private static let follower = """
        import asyncio, sys, threading
        from safelight import Library
        from safelight.aio import AsyncLibrary
        fetch = \(fetch)
        def say(word, rest=""): sys.stdout.write(f"{word} {rest}\\n"); sys.stdout.flush()
        def changes():
            with Library() as library:
                for event in library.changes(events=True):
                    say("change", event["sequence"]) if "sequence" in event else say("changes")
        def live():
            with Library() as library:
                for result in library.live(fetch): say("live"); say("list", " ".join(result.ids))
        async def async_changes():
            async with AsyncLibrary() as library:
                async for event in library.changes(events=True):
                    say("change", event["sequence"]) if "sequence" in event else say("changes")
        async def async_live():
            async with AsyncLibrary() as library:
                async for result in library.live(fetch): say("live"); say("list", " ".join(result.ids))
        async def both(): await asyncio.gather(async_changes(), async_live())
        if sys.argv[1] == "asyncio": asyncio.run(both())
        threads = [threading.Thread(target=function) for function in (changes, live)]
        for thread in threads: thread.start()
        """

    private func withGeneratedLibrary(
        _ body: (SafelightFixture, PhotoLibrary, [ObjectID]) async throws -> Void
    ) async throws {
        let services = try SafelightFixture("python")
        try services.generateLibrary(assets: 40)
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let ids = try await library.assets(FetchDescription(.assets), count: 100).assets.map(\.id)
        try await body(services, library, ids)
        await library.close()
        #expect(services.stop() == [])
    }

    /// Returns the lists that a program has printed, each on a line after its sequence.
    private static func lists(_ program: RunningProgram) -> [[String]] {
        program.outputText.split(separator: "\n").map { $0.split(separator: " ").dropFirst().map(String.init) }
    }

    /// Changes ratings; meanwhile the broker is killed and started again twice.
    private static func change(
        _ ids: [ObjectID],
        _ library: PhotoLibrary,
        _ services: SafelightFixture,
        beforeFirstKill: () async throws -> Void = {}
    ) async throws {
        var random = SeededRandom(named: "ratings")
        for index in 0..<80 {
            var patch = AssetPatch()
            patch.rating = Int.random(in: 0...5, using: &random)
            _ = try await library.perform([.updateAsset(.init(id: .id(random.pick(ids)), set: patch))])
            if index == 39 { try await beforeFirstKill() }
            if index == 39 || index == 59 { services.killHard(.changeBroker) }
            if index == 44 || index == 64 { try services.start([.changeBroker]) }
        }
    }

    private static func expectedList(_ library: PhotoLibrary) async throws -> [ObjectID] {
        var fetch = FetchDescription(.assets)
        fetch.predicate = "rating >= 2"
        fetch.sort = [SortDescription(key: "rating", ascending: false)]
        fetch.limit = 7
        fetch.offset = 2
        return try await library.assets(fetch).assets.map(\.id)
    }
}
