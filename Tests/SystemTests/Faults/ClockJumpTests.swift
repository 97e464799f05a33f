import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A wall clock that is years ahead at one start.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ClockJumpTests {
    /// The path of libfaketime in the loader's directories; nil if it is not installed.
    private static let faketime: String? = {
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
        return folders.map { $0 + "/faketime/libfaketime.so.1" }.first(where: FileManager.default.fileExists)
    }()

    @Test func `a clock set far ahead at one start empties neither the trash nor the history`() async throws {
        guard let faketime = Self.faketime else {
            return TestPaths.report("libfaketime is missing: the start with a wrong clock is not tested")
        }
        let services = try SafelightFixture("clock")
        try services.start([.catalog])
        let library = try services.library()
        let made = try await library.perform(
            [.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))],
            attachments: [TestImages.jpeg(width: 32, height: 24, seed: 1)]
        )
        let id = try #require(made.id("p"))
        _ = try await library.perform([.trashAssets(.init(ids: [id]))])
        let before = try await library.currentToken()
        await library.close()
        #expect(services.stop() == [])

        let ahead = try SafelightFixture(
            "ahead",
            environment: [
                "SAFELIGHT_LIBRARY": services.folder.file("library"), "LD_PRELOAD": faketime, "FAKETIME": "+3650d",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
            ]
        )
        let catalog = try RunningProgram("catalog", [], environment: ahead.environment)
        #expect(catalog.wait { $0.errorText.contains("ahead of the elapsed time") }, "\(catalog.errorText)")
        let late = try ahead.library()
        for number in 0..<3 {
            _ = try await late.perform([.createCollection(.init(ref: "a", title: "\(number)"))])
        }
        let after = try await late.currentToken()
        #expect(after.oldest == before.oldest && after.token.sequence == before.token.sequence + 3)
        #expect(try await late.catalog.ask(ChangesSince(token: before.oldest)).result.records.count == 5)
        await late.close()
        catalog.signal(SIGTERM)
        #expect(catalog.wait(seconds: 20) == 0, "\(catalog.errorText)")

        // With the right clock the library is unchanged.
        try services.start([.catalog])
        let right = try services.library()
        #expect(try await right.currentToken().oldest == before.oldest)
        _ = try await right.perform([.restoreAssets(.init(ids: [id]))])
        #expect(try await right.asset(id).isRecentlyAdded)
        await right.close()
        #expect(services.stop() == [])
    }
}
