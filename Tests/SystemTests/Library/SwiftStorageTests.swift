import Basics
import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The object store against OpenStack Swift's S3 interface: another server than moto's, by other authors, with its
/// objects on disk.
///
/// Only with `SAFELIGHT_SOAK`, up to 25 rounds of kills; `make soak` installs its package.
@Suite(
    .serialized,
    .enabled(if: TestEnvironment.rounds(1) > 1, "it needs OpenStack Swift; make soak installs and runs it"),
    .timeLimit(.minutes(30))
)
struct SwiftStorageTests {
    @Test(.spec("S-47", "S-48", "T-33"))
    func `originals of one and of several parts go to OpenStack Swift and come back whole`() throws {
        let store = try SwiftServer()
        let services = try SafelightFixture(
            "swift-storage",
            environment: try store.environment.merging(["SAFELIGHT_COLLECT_AFTER_SECONDS": "1"]) { $1 }
        )
        for (index, name) in ["small", "six", "seven", "eight", "nine", "ten"].enumerated() {
            let seed = UInt64(70 + index)
            try services.folder.write(TestImages.jpeg(width: 600, height: 400, seed: seed), to: "\(name).jpg")
        }
        try services.folder.write(TestImages.jpeg(mebibytesAfter: 96, seed: 69), to: "large.jpg")
        try FFmpegVideos.make(services.folder.file("film.mov"), ["-c:v", "libx264", "-pix_fmt", "yuv420p"])
        try services.start()
        try RowScript.run(
            "storage.py",
            services,
            module: "boto3",
            parts: [
                "originals_of_one_and_of_several_parts", "videos_of_remote_originals",
                "edits_of_remote_originals", "fetches_by_place", "no_upload_in_parts_is_left",
            ]
        )
        #expect(services.stop() == [])
        #expect(!services.logs.contains(SwiftServer.secret), "the secret is in the log")
    }

    @Test(.spec("S-47", "T-33"))
    func `a library larger than its budget reads all originals from OpenStack Swift, its bucket in the host`() throws {
        let store = try SwiftServer()
        let environment = try store.virtualHostEnvironment.merging([
            "SAFELIGHT_OBJECT_STORE_POLICY": "optimize", "SAFELIGHT_LOCAL_BYTES": "300000",
        ]) { $1 }
        let services = try SafelightFixture("swift-budget", environment: environment)
        for index in 0..<24 {
            let photo = TestImages.jpeg(width: 400, height: 300, seed: UInt64(100 + index))
            try services.folder.write(photo + [UInt8](repeating: 7, count: 30_000), to: "many-\(index).jpg")
        }
        try services.start([.catalog, .changeBroker, .thumbnailer])
        try RowScript.run(
            "storage.py",
            services,
            module: "boto3",
            parts: [
                "a_library_larger_than_its_budget", "all_originals_can_be_read", "the_store_has_what_the_library_has",
            ]
        )
        #expect(services.stop() == [])
    }

    @Test(.spec("S-47", "T-33"))
    func `kills of OpenStack Swift in the middle of uploads lose no original and leave nothing else`() async throws {
        let store = try SwiftServer()
        let environment = try store.environment.merging([
            "SAFELIGHT_OBJECT_STORE_POLICY": "optimize", "SAFELIGHT_LOCAL_BYTES": "4000000",
            "SAFELIGHT_OBJECT_STORE_RATE": "16777216", "SAFELIGHT_COLLECT_AFTER_SECONDS": "1",
        ]) { $1 }
        let services = try SafelightFixture("swift-kills", environment: environment)
        try services.start([.catalog])
        let library = try services.library()
        var random = SeededRandom(named: "kills of Swift")
        var live: [ObjectID: String] = [:]
        for round in 0..<min(25, TestEnvironment.rounds(1)) {
            // In every fifth round a file of two parts: 70 MiB.
            for number in 0..<6 {
                let mebibytes = round % 5 == 0 && number == 0 ? 70 : 2
                let bytes = TestImages.jpeg(mebibytesAfter: mebibytes, seed: UInt64(round * 100 + number))
                let path = try services.folder.write(bytes, to: "\(round)-\(number).jpg")
                let result = try await library.perform([
                    .createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))
                ])
                live[try #require(result.id("a"))] = SHA256.hash(data: bytes).hexadecimal
                try FileManager.default.removeItem(atPath: path)
            }
            try await waitUntil("an upload has begun, and has not ended") { store.isReceiving }
            // In some rounds the catalog dies at the same time, and in some an original is deleted meanwhile.
            store.killHard()
            if Bool.random(using: &random) { try services.restart(.catalog) }
            if Bool.random(using: &random), let id = live.keys.randomElement(using: &random) {
                _ = try await library.perform([.deleteAssets(.init(ids: [id]))])
                live[id] = nil
            }
            try store.restart()
            try await waitUntil("all are uploaded, and the local files are within the budget", seconds: 120) {
                let status = try await library.catalog.ask(StorageStatus()).result
                return status.waitingCount == 0 && status.localBytes <= 4_000_000
            }
        }
        let output = services.folder.file("output")
        let exported = try services.safelight(["export", "--output", output, "--download"])
        #expect(exported.status == 0, "\(exported.errors)")
        let digests = try FileManager.default.contentsOfDirectory(atPath: output).map { name in
            let bytes = try #require(FileManager.default.contents(atPath: "\(output)/\(name)"))
            return SHA256.hash(data: Array(bytes)).hexadecimal
        }
        #expect(digests.sorted() == live.values.sorted())
        try RowScript.run(
            "storage.py",
            services,
            module: "boto3",
            seconds: 600,
            parts: ["the_store_has_what_the_library_has"]
        )
        await library.close()
        #expect(services.stop() == [])
    }
}
