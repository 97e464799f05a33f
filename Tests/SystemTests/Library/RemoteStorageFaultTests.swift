import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Originals in remote storage after a restore, and after kills of the catalog and of the store.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct RemoteStorageFaultTests {
    @Test(.onlySQLite)
    func `a restored library uploads again what the store has deleted since the backup`() async throws {
        let store = try S3Server()
        let environment = try store.environment.merging(["SAFELIGHT_COLLECT_AFTER_SECONDS": "1"]) { $1 }
        let services = try SafelightFixture("remote-restore", environment: environment)
        let photo = try services.folder.write(TestImages.jpeg(width: 600, height: 400, seed: 1), to: "photo.jpg")
        try services.start([.catalog])
        let library = try services.library()
        let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .path(photo))]))
        let id = try #require(try await library.perform([create]).id("p"))
        try await waitUntil("uploaded") {
            try services.safelight(["storage"]).output.contains("uploaded  1 file")
        }
        let objects = try store.objects
        #expect(objects.count == 1)
        let backup = services.folder.file("backup")
        #expect(try services.safelight(["backup", backup]).status == 0)
        _ = try await library.perform([.deleteAssets(.init(ids: [id]))])
        try await waitUntil("deleted at the store") { try store.objects.isEmpty }
        await library.close()
        #expect(services.stop() == [])

        let target = services.folder.file("restored")
        let restore = try services.safelight(["restore", backup, "--library", target])
        #expect(restore.status == 0, "\(restore.errors)")
        let restored = try SafelightFixture(
            "remote-restored",
            environment: environment.merging(["SAFELIGHT_LIBRARY": target]) { $1 }
        )
        try restored.start([.catalog])
        try await waitUntil("uploaded again") { try store.objects == objects }
        #expect(restored.stop() == [])
        withExtendedLifetime(services) {}
    }

    @Test func `a kill during an upload in parts or a download leaves nothing behind`() async throws {
        let store = try S3Server()
        let rate = ["SAFELIGHT_OBJECT_STORE_RATE": "30000000", "SAFELIGHT_COLLECT_AFTER_SECONDS": "1"]
        let services = try SafelightFixture("remote-parts", environment: store.environment.merging(rate) { $1 })
        // Above 64 MiB a file is uploaded in parts.
        let path = services.folder.file("large.jpg")
        try services.folder.write(TestImages.jpeg(width: 320, height: 240), to: "large.jpg")
        #expect(truncate(path, 70 << 20) == 0)
        try services.start([.catalog])
        func count(_ method: String, _ part: String) -> Int {
            store.requests.count { $0.contains("\"\(method)\"") && $0.contains(part) }
        }
        #expect(try services.safelight(["import", path]).status == 0)
        try await waitUntil("an upload in parts has begun") { count("POST", "uploads") == 1 }
        try services.restart(.catalog)
        try await waitUntil("the file is uploaded") {
            try services.safelight(["storage"]).output.contains("uploaded  1 file,")
        }
        #expect(count("POST", "uploads") == 2)
        #expect(count("DELETE", "uploadId") == 1, "the parts of the first upload")
        // The file may be in use for a short time after its upload.
        try await waitUntil("1 file is given up") {
            try services.safelight(["storage", "release", "--where", "mediaType == 'image'"]).output
                .contains("1 file released")
        }
        // Each response is delayed, so that the download has started and not ended.
        try store.setFaults(#"{"delay": 3}"#)
        let before = store.requests.count
        let command = ["storage", "keep", "--where", "mediaType == 'image'"]
        let keeping = try RunningProgram("safelight", command, environment: services.environment)
        try await waitUntil("the download has begun") { store.requests.count > before }
        try services.restart(.catalog)
        keeping.killHard()
        try store.setFaults("{}")
        #expect(try services.safelight(command).status == 0)
        let copy = services.folder.file("copy")
        let export = try services.safelight(["export", "--where", "mediaType == 'image'", "--output", copy])
        #expect(export.status == 0, "\(export)")
        let library = services.folder.file("library")
        let files = try FileManager.default.subpathsOfDirectory(atPath: library).filter { name in
            let size = try? FileManager.default.attributesOfItem(atPath: "\(library)/\(name)")[.size] as? Int64
            return (size ?? 0) > 1 << 20 && !name.hasPrefix("library.sqlite")
        }
        #expect(files.count == 1, "\(files)")
        #expect(services.stop() == [])
    }

    /// The bad network has 200 ms there and back, 1 Mbit/s, and cuts every second connection within two seconds.
    @Test(arguments: [false, true])
    func `kills of the catalog and of the store lose no original and leave no orphan`(overBadNetwork: Bool) async throws
    {
        let store = try S3Server()
        var random = SeededRandom(named: "kills of the store")
        var environment = try store.environment.merging([
            "SAFELIGHT_OBJECT_STORE_POLICY": "optimize", "SAFELIGHT_LOCAL_BYTES": "150000",
            "SAFELIGHT_COLLECT_AFTER_SECONDS": "1",
        ]) { $1 }
        var network: BadNetwork?
        if overBadNetwork {
            let server = try #require(Int(try store.port))
            let proxy = try BadNetwork(
                before: server,
                delay: 0.1,
                bytesPerSecond: 125_000,
                cuts: 0.5,
                seed: random.next()
            )
            environment["SAFELIGHT_OBJECT_STORE_ENDPOINT"] = "http://127.0.0.1:\(proxy.port)"
            network = proxy
        }
        let services = try SafelightFixture("remote-kills", environment: environment)
        try services.start([.catalog])
        let library = try services.library()
        var live: [ObjectID: [UInt8]] = [:]
        for round in 0..<TestEnvironment.rounds(5) {
            let (pause, isCatalog) = (Int.random(in: 0...1200, using: &random), round.isMultiple(of: 2))
            let killer = Task {
                try await Task.sleep(for: .milliseconds(pause))
                if isCatalog { try services.restart(.catalog) } else { try store.restart() }
            }
            for number in 0..<8 {
                let photo = TestImages.jpeg(width: 200, height: 150, seed: UInt64(round * 100 + number))
                let bytes = photo + [UInt8](repeating: UInt8(number), count: 20_000)
                let result = try await library.perform(
                    [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
                    attachments: [bytes]
                )
                live[try #require(result.id("a"))] = bytes
                // Fetches, evictions and deletions meanwhile; a kill makes them fail with a named error.
                if let id = live.keys.randomElement(using: &random) {
                    _ = try? await library.catalog.ask(
                        ReadResource(asset: id, type: .photo, isNetworkAccessAllowed: true)
                    )
                }
            }
            if let id = live.keys.randomElement(using: &random) {
                _ = try await library.perform([.deleteAssets(.init(ids: [id]))])
                live[id] = nil
            }
            try await killer.value
        }
        let expected = Set(live.values.map { SHA256.hash(data: $0).hexadecimal })
        // Over the bad network each round has uploads of two seconds, if none is cut.
        let seconds = 60 + TestEnvironment.rounds(5) * 6
        try await waitUntil("the store has what the library refers to, and no orphan", seconds: seconds) {
            let status = try await library.catalog.ask(StorageStatus()).result
            return try status.waitingCount == 0 && status.localBytes <= 150_000 && status.deletingCount == 0
                && store.objects == expected
        }
        for (id, bytes) in live {
            let request = ReadResource(asset: id, type: .photo, isNetworkAccessAllowed: true)
            let answer = try await library.catalog.ask(request)
            #expect(answer.attachments.first == bytes, "\(id)")
        }
        await library.close()
        #expect(services.stop() == [])
        if let network {
            let cuts = network.end()
            #expect(cuts > 0)
            TestPaths.report("\(cuts) connections were cut")
        }
    }
}
