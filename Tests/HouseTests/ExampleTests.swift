import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The Python scripts of `compose/examples`, run as a user runs them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ExampleTests {
    private static let python: String? = {
        guard let python = TestPlace.program("python3"),
            let check = try? RunningProgram.run(python, ["-c", "import zmq"]), check.status == 0
        else { return nil }
        return python
    }()

    private func lines(of script: String) throws -> Int {
        try String(contentsOfFile: TestPlace.package + "/compose/examples/" + script, encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: true)
            .count { !$0.trimmingCharacters(in: .whitespaces).hasPrefix("#") }
    }

    @Test func `a REQ script of under fifteen lines saves a picture of each of the five newest photos`() throws {
        guard let python = Self.python else { return TestPlace.say("python3 with pyzmq is missing: script not run") }
        #expect(try lines(of: "newest_five.py") < 15)
        let house = try RunningHouse("five")
        for day in 1...7 {
            try house.folder.write(
                TestPictures.jpeg(width: 800, height: 600, date: "2024:06:0\(day) 12:00:00", seed: UInt64(day)),
                to: "photos/\(day).jpg"
            )
        }
        try house.start()
        #expect(try house.safelight(["import", house.folder.file("photos")]).status == 0)
        var environment = house.environment
        environment["SAFELIGHT_OUTPUT"] = house.folder.file("out")
        try FileManager.default.createDirectory(
            atPath: house.folder.file("out"),
            withIntermediateDirectories: true
        )
        let script = TestPlace.package + "/compose/examples/newest_five.py"
        let shell = "cd \(house.folder.file("out")) && exec \(python) \(script)"
        let run = try RunningProgram.run("/bin/sh", ["-c", shell], environment: environment)
        #expect(run.status == 0, "\(run.errors)")
        let pictures = try FileManager.default.contentsOfDirectory(atPath: house.folder.file("out"))
        #expect(pictures.count == 5)
        for picture in pictures {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: house.folder.file("out/" + picture)))
            #expect(bytes.starts(with: [0xFF, 0xD8]))
        }
        #expect(house.stop() == [])
    }

    @Test func `a subscriber of under thirty lines prints every change once through a broker restart`() async throws {
        guard let python = Self.python else { return TestPlace.say("python3 with pyzmq is missing: script not run") }
        #expect(try lines(of: "follow_changes.py") < 30)
        let house = try RunningHouse("follow")
        let path = try house.folder.write(TestPictures.jpeg(seed: 9), to: "a.jpg")
        try house.start([.catalog, .changeBroker])
        let library = try house.library()
        let created = try await library.perform(
            [.createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))])
        let asset = try #require(created.id("a"))
        let script = try RunningProgram(
            python,
            ["-u", TestPlace.package + "/compose/examples/follow_changes.py"],
            environment: house.environment
        )
        #expect(script.waitForOutput("1 "), "\(script.errorText)")
        for index in 0..<60 {
            _ = try await library.perform(
                [.updateAsset(.init(id: .id(asset), set: AssetPatch(caption: .some("\(index)"))))])
            if index == 20 || index == 40 { house.killHard(.changeBroker) }
            if index == 25 || index == 45 { try house.start([.changeBroker]) }
        }
        #expect(script.waitForOutput("\n61 ", seconds: 60), "\(script.outputText)\n\(script.errorText)")
        let numbers = script.outputText.split(separator: "\n").compactMap { $0.split(separator: " ").first }
            .compactMap { Int($0) }
        #expect(numbers == Array(1...61))
        script.killHard()
        await library.close()
        #expect(house.stop() == [])
    }
}
