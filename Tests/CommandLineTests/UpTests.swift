import ArgumentParser
import Foundation
import Hosting
import JSONValue
import TestSupport
import Testing

@testable import CommandLine

/// `safelight up` with the real services.
@Suite(.timeLimit(.minutes(2)), .serialized)
struct UpTests {
    /// The services of a `safelight up` in a temporary folder.
    private final class SupervisorFixture {
        let folder: TemporaryFolder
        let program: RunningProgram
        let environment: [String: String]

        init() throws {
            folder = try TemporaryFolder("up")
            environment = [
                "SAFELIGHT_RUN": folder.file("run"), "SAFELIGHT_LIBRARY": folder.file("library"),
                "SAFELIGHT_LOG": "info",
            ]
            program = try RunningProgram("safelight", ["up", "--json"], environment: environment)
            try #require(program.waitForOutput("\n"), "\(program.errorText)")
        }

        func safelight(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", arguments, environment: environment)
        }

        /// Returns the process identifier of a service, from its metrics.
        func process(of service: String) throws -> Int32 {
            let status = try safelight("status", "--json", "--wait", "20")
            let json = try JSON(parsing: Array(status.output.utf8))
            let pid = json["services"]?[service]?["figures"]?["process"]?["pid"]?.intValue
            return Int32(try #require(pid, "\(status)"))
        }
    }

    @Test func `--store sqlite takes precedence over a server in the environment`() throws {
        let command = try UpCommand.parse(["--store", "sqlite"])
        let database = try command.store.resolve { _ in "postgresql://host/photos" }
        let addresses = try command.endpoints.resolve { _ in nil }
        let variables = command.variables(library: "/l", database: database, replica: nil, addresses: addresses)
        #expect(try StoreOptions.parse([]).resolve { variables[$0] } == nil)
        #expect(variables["SAFELIGHT_STORE"] == "sqlite")
    }

    @Test func `a folder with other files is recognized before a library is created in it`() throws {
        let folder = try TemporaryFolder("up")
        #expect(!UpCommand.hasForeignFiles(folder.path) && !UpCommand.hasForeignFiles(folder.file("none")))
        for name in ["cache/a", "library.sqlite-wal", ".hidden", "lock"] { try folder.write([], to: name) }
        #expect(!UpCommand.hasForeignFiles(folder.path))
        try folder.write([1], to: "2024/IMG_1.jpg")
        #expect(UpCommand.hasForeignFiles(folder.path))
        try folder.write([1], to: "library.sqlite")
        try folder.write([1], to: "resources/ab/cd")
        #expect(!UpCommand.hasForeignFiles(folder.path), "a library that exists already")
    }

    @Test func `a killed service is restarted, and Ctrl-C stops all services`() throws {
        let fixture = try SupervisorFixture()
        for service in ["catalog", "change-broker", "thumbnailer", "editor"] {
            let before = try fixture.process(of: service)
            kill(before, SIGKILL)
            let after = try fixture.process(of: service)
            #expect(after != before, "\(service)")
            #expect(fixture.program.errorText.contains("the \(service) was ended by signal 9"))
        }
        let last = try fixture.process(of: "catalog")
        fixture.program.signal(SIGINT)
        #expect(fixture.program.wait(seconds: 30) == 0)
        #expect(kill(last, 0) != 0)
    }

    @Test func `a second up in the same run folder is refused`() throws {
        let fixture = try SupervisorFixture()
        let second = try fixture.safelight("up")
        #expect(second.status == 1)
        #expect(second.errors.contains("already_running"))
        fixture.program.signal(SIGTERM)
        #expect(fixture.program.wait(seconds: 30) == 0)
    }

    @Test func `the services end when up is killed, and the next up starts new ones`() throws {
        let fixture = try SupervisorFixture()
        let orphan = try fixture.process(of: "catalog")
        fixture.program.killHard()
        let next = try RunningProgram("safelight", ["up", "--json"], environment: fixture.environment)
        #expect(next.waitForOutput("\n", seconds: 30), "\(next.errorText)")
        #expect(try fixture.process(of: "catalog") != orphan)
        next.signal(SIGTERM)
        #expect(next.wait(seconds: 30) == 0)
    }

    @Test func `up waits for a service of a previous up that was killed if the service ends late`() async throws {
        let fixture = try SupervisorFixture()
        let orphan = try fixture.process(of: "thumbnailer")
        kill(orphan, SIGSTOP)
        fixture.program.killHard()
        let next = try RunningProgram("safelight", ["up", "--json"], environment: fixture.environment)
        // The pause is longer than five attempts take.
        try await Task.sleep(for: .seconds(4))
        kill(orphan, SIGCONT)
        #expect(next.waitForOutput("\n", seconds: 30), "\(next.errorText)")
        next.signal(SIGTERM)
        #expect(next.wait(seconds: 30) == 0)
    }

    @Test func `a service that cannot start ends up with an error`() throws {
        let folder = try TemporaryFolder("up")
        try folder.write([], to: "file")
        let result = try RunningProgram.run(
            "safelight",
            ["up", "--library", folder.file("file"), "--run", folder.file("run")],
            seconds: 60
        )
        #expect(result.status == 1)
        #expect(result.errors.contains("not_started"))
    }

    @Test func `an import stops at a signal, resumes when repeated, and reports broken files`() throws {
        let fixture = try SupervisorFixture()
        let image = TestImages.jpeg(width: 64, height: 48)
        for number in 0..<200 {
            try fixture.folder.write(image + Array("\(number)".utf8), to: "photos/\(number).jpg")
        }
        try fixture.folder.write([1, 2, 3], to: "photos/broken.jpg")
        let photos = fixture.folder.file("photos")
        let first = try RunningProgram(
            "safelight",
            ["import", photos, "--verbose", "--parallel", "2"],
            environment: fixture.environment
        )
        #expect(first.waitForOutput("imported"))
        first.signal(SIGINT)
        #expect(first.wait(seconds: 30) == 3)
        let second = try fixture.safelight("import", photos, "--json")
        #expect(second.status == 3)
        let lines = try second.output.split(separator: "\n").map { try JSON(parsing: Array($0.utf8)) }
        let summary = try #require(lines.last?["summary"])
        #expect(summary["broken"]?.intValue == 1)
        #expect((summary["imported"]?.intValue ?? 0) + (summary["duplicates"]?.intValue ?? 0) == 200)
        #expect((summary["duplicates"]?.intValue ?? 0) > 0)
        #expect(lines.contains { $0["error"]?["name"]?.stringValue == "invalid_resource" })
        #expect(try fixture.safelight("fetch", "--count").output == "200\n")
        fixture.program.signal(SIGTERM)
        #expect(fixture.program.wait(seconds: 30) == 0)
    }
}
