import Contracts
import Basics
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Imports of many files: at whichever point an import is killed and resumed, each file is in the library once.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ImportTests {
    private static let count = TestEnvironment.rounds(1) > 1 ? 2000 : 200

    private static func write(_ count: Int, _ services: SafelightFixture) throws -> [String: Int] {
        var digests: [String: Int] = [:]
        for number in 0..<count {
            let bytes = TestImages.jpeg(width: 32, height: 24, seed: UInt64(number))
            try services.folder.write(bytes, to: "photos/\(number % 7)/\(number).jpg")
            digests[SHA256.hash(data: bytes).hexadecimal, default: 0] += 1
        }
        return digests
    }

    /// Returns the number of imported files; a transaction imports several.
    private static func imported(_ library: PhotoLibrary) async -> Int64 {
        Int64((try? await library.assets(FetchDescription(.assets), count: 0).count) ?? 0)
    }

    @Test(.spec("P-23"))
    func `an import resumes after kills of the client and of the catalog, and each file is imported once`()
        async throws
    {
        var random = SeededRandom(named: "import kill")
        let services = try SafelightFixture("import")
        let digests = try Self.write(Self.count, services)
        try services.start([.catalog])
        let library = try services.library()
        let arguments = ["import", services.folder.file("photos"), "--parallel", "64"]
        // The client is killed twice, each time after some more files.
        var reached: Int64 = 0
        for share in [4, 2] {
            let client = try RunningProgram("safelight", arguments, environment: services.environment)
            let goal = Int64(Self.count / share) - Int64.random(in: 0..<10, using: &random)
            while await Self.imported(library) < goal, client.isRunning { try await Task.sleep(for: .milliseconds(5)) }
            client.killHard()
            _ = client.wait(seconds: 10)
            let count = await Self.imported(library)
            #expect(count >= reached)
            reached = count
        }
        // The catalog is killed under a client, which continues by itself.
        let client = try RunningProgram(
            "safelight",
            arguments + ["--json", "--wait", "60"],
            environment: services.environment
        )
        for _ in 0..<2 {
            try await Task.sleep(for: .milliseconds(Int.random(in: 50...300, using: &random)))
            try services.restart(.catalog)
        }
        #expect(client.wait(seconds: 300) == 0, "\(client.errorText)")
        let last = client.outputText.split(separator: "\n").last.map(String.init) ?? ""
        let summary = try JSON(parsing: last)["summary"]
        let (imported, known) = (summary?["imported"]?.intValue ?? -1, summary?["duplicates"]?.intValue ?? -1)
        #expect(imported + known == Self.count && known >= reached && summary?["broken"]?.intValue == 0, "\(last)")

        var counts: [String: Int] = [:]
        for try await asset in library.allAssets(FetchDescription(.assets)) {
            counts[asset.originalResource?.digest ?? "", default: 0] += 1
        }
        #expect(counts == digests)
        #expect(await Self.imported(library) == Int64(Self.count))

        // The kills hit groups of files that were stored but not yet synced, or synced but not yet committed.
        let deep = try services.safelight(["doctor", "--deep"])
        #expect(deep.output.contains("their content is unchanged"), "\(deep.output)")
        let again = try services.safelight(arguments)
        #expect(again.status == 0 && again.output.contains("\(Self.count) already there"), "\(again.output)")
        await library.close()
        #expect(services.stop() == [])
    }

    @Test(.spec("P-15", "S-78"))
    func `pairs, sidecars, broken and unreadable files of a folder are each reported with their kind`() async throws {
        let services = try SafelightFixture("folder")
        func image(_ seed: UInt64, date: String? = nil) -> [UInt8] {
            TestImages.jpeg(width: 32, height: 24, date: date, seed: seed)
        }
        let raw = Array("FUJIFILMCCD-RAW 0201FF383501".utf8) + [UInt8](repeating: 1, count: 100)
        let still = TestImages.appleImage(note: TestImages.appleNote(content: "ONE"))
        let video = TestVideos.video(values: [("content.identifier", "ONE")])
        let files: [(String, [UInt8])] = [
            ("DSC1.JPG", image(1)), ("DSC1.RAF", raw), ("IMG_2.HEIC.jpg", image(2)), ("live.jpg", still),
            ("live.MOV", video), ("other.jpg", TestImages.appleImage(note: TestImages.appleNote(content: "A"))),
            ("other.mov", TestVideos.video(values: [("content.identifier", "B")])),
            ("rated.jpg", image(3)), ("rated.jpg.xmp", Array(TestImages.xmpPacket("xmp:Rating=\"5\"").utf8)),
            ("DSC1.xmp", [UInt8](repeating: 32, count: 4 << 20 + 1)), ("live.xmp", Array("no XMP".utf8)),
            ("bad.jpg", image(4)), ("bad.xmp", Array("no XMP".utf8)), ("broken.jpg", Array(image(5).dropLast(200))),
            ("words.txt", Array("words".utf8)),
        ]
        for (name, bytes) in files { try services.folder.write(bytes, to: "photos/" + name) }
        let folder = services.folder.file("photos")
        let dry = try services.safelight(["import", folder, "--dry-run", "--json"])
        #expect(dry.status == 0 && dry.output.split(separator: "\n").count == 7, "\(dry.output)")

        try services.start([.catalog])
        let done = try services.safelight(["import", folder])
        #expect(done.status == 3)
        // A pair and a Live Photo are imported without a sidecar that cannot be read.
        for name in ["bad.xmp", "broken.jpg", "DSC1.xmp", "live.xmp"] {
            #expect(done.errors.contains(name), "\(done.errors)")
        }
        let library = try services.library()
        var assets: [String: Asset] = [:]
        for try await asset in library.allAssets(FetchDescription(.assets)) {
            assets[asset.originalFilename ?? ""] = asset
        }
        #expect(assets.count == 7, "\(assets.keys.sorted())")
        #expect(assets["DSC1.JPG"]?.resources.map(\.type) == [.photo, .alternatePhoto])
        #expect(assets["live.jpg"]?.playbackStyle == .livePhoto)
        #expect(assets["other.jpg"]?.playbackStyle == .image && assets["other.mov"]?.mediaType == .video)
        #expect(assets["rated.jpg"]?.rating == 5 && assets["bad.jpg"]?.rating == 0)

        // All original files are exported, also the raw file of a pair.
        let out = services.folder.file("out")
        let exported = try services.safelight(["export", "--output", out])
        #expect(exported.status == 0, "\(exported.errors)")
        let pairs = try FileManager.default.contentsOfDirectory(atPath: out)
            .filter { $0.hasPrefix("DSC1") || $0.hasPrefix("live") }
        #expect(pairs.sorted() == ["DSC1.JPG", "DSC1.RAF", "live.MOV", "live.jpg"])
        #expect(try Array(Data(contentsOf: URL(filePath: out + "/DSC1.RAF"))) == raw)
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `every service can read referenced files, and rescan reports their state`() async throws {
        let folder = try TemporaryFolder("originals")
        let services = try SafelightFixture("reference", environment: ["SAFELIGHT_IMPORT_ROOTS": folder.path])
        for seed in 1...3 {
            let bytes = TestImages.jpeg(width: 320, height: 200, seed: UInt64(seed))
            try folder.write(bytes, to: "\(seed).jpg")
        }
        try services.start()
        let done = try services.safelight(["import", "--reference", folder.path])
        #expect(done.status == 0, "\(done.errors)")
        let library = try services.library()
        let assets = try await library.assets(FetchDescription(.assets)).assets
        let asset = try #require(assets.first { $0.originalFilename == "1.jpg" })
        let thumb = try await library.thumbnailer.ask(
            ImageRequest(asset: asset.id, targetSize: .size(width: 100, height: 100), resizeMode: .exact)
        )
        #expect(thumb.result.pixelWidth == 100)
        let list = AdjustmentList(operations: [.exposure(0.5)])
        let edit = try await library.editor.ask(ApplyEdit(asset: asset.id, adjustments: list))
        #expect(edit.result.isChanged)

        #expect(try services.safelight(["rescan"]).status == 0)
        try folder.write(TestImages.jpeg(width: 320, height: 200, seed: 9), to: "2.jpg")
        let second = try #require(assets.first { $0.originalFilename == "2.jpg" })
        let changed = await #expect(throws: RPCError.self) {
            try await library.thumbnailer.ask(
                ImageRequest(asset: second.id, targetSize: .size(width: 90, height: 90), resizeMode: .exact)
            )
        }
        #expect(changed?.errorCode == .resourceChanged)
        let scan = try services.safelight(["rescan"])
        #expect(scan.status == 3 && scan.output.contains("changed   " + folder.path), "\(scan.output)")
        await library.close()
        #expect(services.stop() == [])
    }
}
