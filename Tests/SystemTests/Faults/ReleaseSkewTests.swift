import Foundation
import TestSupport
import Testing

/// Tests this commit with an earlier one: the earlier client with these services, this client with the earlier
/// services, services of both versions together, and a library of the earlier version.
///
/// Runs with `SAFELIGHT_EARLIER_EXECUTABLES`, the folder of the earlier executables, which `make soak` builds.
@Suite(
    .serialized,
    .timeLimit(.minutes(10)),
    .enabled(if: TestEnvironment.text("SAFELIGHT_EARLIER_EXECUTABLES") != nil, "make soak builds an earlier commit")
)
struct ReleaseSkewTests {
    private static let earlier = TestEnvironment.text("SAFELIGHT_EARLIER_EXECUTABLES") ?? ""

    /// Runs commands that every version has, with an album and three photos. Each must succeed.
    private func runCommands(_ services: SafelightFixture, client: String, _ round: Int) throws {
        let photos = try (1...3).map { number in
            try services.folder.write(
                TestImages.jpeg(
                    width: 96,
                    height: 64,
                    date: "2024:0\(round):0\(number) 10:00:00",
                    seed: UInt64(round * 8 + number)
                ),
                to: "photos/\(round)-\(number).jpg"
            )
        }
        func run(_ arguments: [String]) throws -> String {
            let done = try RunningProgram.run(
                client + "/safelight",
                arguments,
                environment: services.environment,
                seconds: 60
            )
            #expect(done.status == 0, "\(client) \(arguments): \(done.errors)")
            return done.output
        }
        let before = Set(try run(["fetch", "--ids"]).split(separator: "\n").map(String.init))
        _ = try run(["import"] + photos)
        let ids = Set(try run(["fetch", "--ids"]).split(separator: "\n").map(String.init)).subtracting(before).sorted()
        try #require(ids.count == 3)
        let image = services.folder.file("image-\(round).jpg")
        let token = try run(["status", "--token"]).trimmingCharacters(in: .whitespacesAndNewlines)
        for arguments in [
            ["album", "create", "Album \(round)", ids[0], ids[1]], ["favorite", ids[0]],
            ["set", ids[1], "--rating", "4"],
            ["edit", ids[0], "--exposure", "0.5"], ["thumb", ids[0], "--size", "32", "--output", image],
            ["trash", ids[2]], ["untrash", ids[2]], ["revert", ids[0]], ["history", ids[0]], ["show", ids[0]],
            ["fetch", "--album", "Album \(round)"], ["album", "list"], ["moments"], ["log"],
            ["backup", services.folder.file("backup-\(round)")],
        ] { _ = try run(arguments) }
        #expect(FileManager.default.fileExists(atPath: image))
        // A client of the same version follows the changes of this client.
        let watched = try run(["watch", "--since", token, "--count", "7", "--json"])
        #expect(watched.split(separator: "\n").count == 7)
        #expect(try run(["fetch", "--where", "rating > 3", "--count"]).contains("\(round)"))
    }

    @Test func `earlier clients and services work with these, and an earlier library is migrated`() throws {
        let (these, earlier) = (TestPaths.executables, Self.earlier)
        let old = try SafelightFixture("release-skew", executables: earlier)
        try old.start()
        try runCommands(old, client: earlier, 1)
        try runCommands(old, client: these, 2)
        #expect(old.stop() == [])
        // The same library: this version migrates it.
        let environment = ["SAFELIGHT_LIBRARY": old.folder.file("library")]
        let new = try SafelightFixture("release-skew", environment: environment)
        try new.start()
        try runCommands(new, client: these, 3)
        try runCommands(new, client: earlier, 4)
        // One service after the other is replaced by the earlier one.
        for (number, service) in [SafelightFixture.Service.editor, .thumbnailer, .changeBroker].enumerated() {
            let program = try #require(new.program(service))
            program.signal(SIGTERM)
            #expect(program.wait(seconds: 20) == 0)
            let mixed = try RunningProgram(
                earlier + "/" + service.rawValue,
                ["--ready-fd", "1"],
                environment: new.environment
            )
            #expect(mixed.waitForOutput("ready"), "\(mixed.errorText)")
            try runCommands(new, client: number % 2 == 0 ? these : earlier, 5 + number)
            #expect(!mixed.errorText.contains("cannot be decoded"), "\(mixed.errorText)")
            mixed.signal(SIGTERM)
            #expect(mixed.wait(seconds: 20) == 0)
            try new.start([service])
        }
        #expect(new.stop() == [])
        // The earlier catalog opens the library of this version, or refuses it with newer_version.
        let again = try RunningProgram(earlier + "/catalog", ["--ready-fd", "1"], environment: new.environment)
        if again.waitForOutput("ready") {
            again.signal(SIGTERM)
            #expect(again.wait(seconds: 20) == 0)
        } else {
            #expect(again.errorText.contains("newer_version"), "\(again.errorText)")
        }
    }
}
