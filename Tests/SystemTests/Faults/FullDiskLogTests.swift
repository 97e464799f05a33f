import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The log of a catalog whose disk is full: it may be on the same disk.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct FullDiskLogTests {
    @Test(.onlySQLite) func `refused changes are logged at most once a second, with their number`() async throws {
        let folder = try TemporaryFolder("full-log")
        let disk = try SmallDisk(folder.file("disk"), mebibytes: 24)
        defer { disk.unmount() }
        let services = try SafelightFixture("full-log", environment: ["SAFELIGHT_LIBRARY": disk.path + "/library"])
        try services.start([.catalog])
        let library = try services.library()
        let id = try await library.createAsset(TestImages.jpeg(width: 64, height: 48, seed: 1))
        try Data(count: disk.freeBytes).write(to: URL(filePath: disk.path + "/filler"))

        let clock = ContinuousClock()
        let start = clock.now
        var refusals = 0
        while refusals < 50 || clock.now - start < .seconds(2) {
            let patch = AssetPatch(caption: .some(String(repeating: "\(refusals) ", count: 10_000)))
            do {
                _ = try await library.perform([.updateAsset(.init(id: .id(id), set: patch))])
            } catch {
                #expect(error.errorCode == .notEnoughSpace)
                refusals += 1
            }
        }
        let seconds = Int((clock.now - start).components.seconds)
        await library.close()
        let program = try #require(services.program(.catalog))
        #expect(services.stop() == [])
        let lines = program.errorText.split(separator: "\n").filter { $0.contains("a commit failed") }
        #expect((1...seconds + 2).contains(lines.count), "\(lines.count) lines for \(refusals) refusals")
        #expect(lines.allSatisfy { $0.contains("failures=") })
    }
}
