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
        let disk = folder.file("disk")
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
        let isMounted = mount("tmpfs", disk, "tmpfs", 0, "size=24m") == 0
        defer { umount2(disk, 2) }
        _ = try Needed.found(isMounted ? true : nil, "the privilege to mount a small disk (root)")
        let services = try SafelightFixture("full-log", environment: ["SAFELIGHT_LIBRARY": disk + "/library"])
        try services.start([.catalog])
        let library = try services.library()
        let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))
        let bytes = TestImages.jpeg(width: 64, height: 48, seed: 1)
        let id = try #require(try await library.perform([create], attachments: [bytes]).id("p"))
        var status = statvfs()
        #expect(statvfs(disk, &status) == 0)
        try Data(count: Int(status.f_bavail * status.f_frsize)).write(to: URL(filePath: disk + "/filler"))

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
