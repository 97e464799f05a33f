import Messaging
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Malicious files, from `safelight import` to the image and the edit, through the real executables.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(1) > 1 ? 60 : 5)))
struct HostileFilesTests {
    private static let rounds = TestEnvironment.rounds(1)

    @Test func `each hostile file is a named error or a correct import, and harms no other work`() async throws {
        let started = ContinuousClock().now
        let services = try SafelightFixture("evil")
        try services.start()
        let library = try services.library()
        let clients = [library.catalog, library.thumbnailer, library.editor]
        let pids = SafelightFixture.Service.allCases.map { services.program($0)?.processIdentifier }
        let peaks = PeakMemory()
        let watching = Task { await peaks.watch(clients) }

        let files = try writeFiles(into: services.folder)
        // A user's file name must not be parsed as an option of `safelight`.
        let imported = try services.safelight(["import", "--json", "--parallel", "4", "--"] + files)
        #expect(imported.status == 3, "\(imported.errors)")
        var assets: [(id: ObjectID, file: String)] = []
        var broken: [String: Int] = [:]
        var answered = 0
        for line in imported.output.split(separator: "\n") {
            let json = try JSON(parsing: Array(line.utf8))
            guard let file = json["file"]?.stringValue else { continue }
            answered += 1
            if let id = json["id"]?.stringValue.flatMap({ ObjectID($0) }) {
                assets.append((id, file))
            } else {
                let name = json["error"]?["name"]?.stringValue ?? ""
                #expect(Self.isNamed(name), "\(file): \(json.text)")
                broken[name, default: 0] += 1
            }
        }
        #expect(answered == files.count, "\(imported.errors)")
        TestPaths.report("\(files.count) hostile files: \(assets.count) imported, refused \(broken)")
        let importTime = ContinuousClock().now - started

        var outcomes: [String: Int] = [:]
        var slowest = (time: Duration.zero, file: "")
        // Four at a time, so that no processor is idle.
        let lanes = (0..<4).map { lane in assets.indices.filter { $0 % 4 == lane }.map { assets[$0] } }
        await withTaskGroup(of: [Ending].self) { group in
            for lane in lanes { group.addTask { await self.endings(of: lane, library) } }
            for await endings in group {
                for ending in endings {
                    for (what, outcome) in [("image", ending.image), ("edit", ending.edit)] {
                        #expect(outcome.map(Self.isNamed) ?? true, "\(what) of \(ending.file): \(outcome ?? "")")
                        outcomes["\(what) \(outcome ?? "succeeded")", default: 0] += 1
                    }
                    if ending.time > slowest.time { slowest = (ending.time, ending.file) }
                }
            }
        }
        TestPaths.report("then: \(outcomes)")
        #expect(slowest.time < .seconds(30), "\(slowest.file)")

        // The next client is served by the same processes.
        let file = try services.folder.write(TestImages.jpeg(seed: 4711), to: "good.jpg")
        let good = try await library.createAsset(path: file)
        #expect(await image(good, library) == nil)
        #expect(await edit(good, library) == nil)
        #expect(SafelightFixture.Service.allCases.map { services.program($0)?.processIdentifier } == pids)
        #expect(
            SafelightFixture.Service.allCases.allSatisfy { services.program($0)?.isRunning == true },
            "\(services.logs)"
        )

        watching.cancel()
        await watching.value
        for (client, limit) in zip(clients, [1536, 3072, 4096]) {
            let metrics = try await client.metrics()["workers"]
            let counts = ["crashed", "timedOut", "started"].map { "\($0) \(metrics?[$0]?.intValue ?? -1)" }
            let name = client.address.path.map { ($0 as NSString).lastPathComponent } ?? ""
            let peak = await peaks.mebibytes[name] ?? 0
            TestPaths.report("workers of \(name): peak \(peak) MiB of \(limit), \(counts.joined(separator: ", "))")
            #expect(peak < limit)
        }
        let duration = ContinuousClock().now - started
        TestPaths.report("import \(importTime), slowest file \(slowest.file) \(slowest.time), all \(duration)")
        if Self.rounds == 1 { #expect(duration < .seconds(110)) }
        await library.close()
        #expect(services.stop() == [])
    }

    // MARK: Requests

    /// The errors of an image and of an edit, nil on success, and the time of both.
    private struct Ending {
        let file: String
        let image: String?
        let edit: String?
        let time: Duration
    }

    /// Requests the image and an edit of each of some assets, one after the other.
    private func endings(of assets: [(id: ObjectID, file: String)], _ library: PhotoLibrary) async -> [Ending] {
        var endings: [Ending] = []
        for (id, file) in assets {
            let start = ContinuousClock().now
            let (imageError, editError) = await (image(id, library), edit(id, library))
            endings.append(Ending(file: file, image: imageError, edit: editError, time: ContinuousClock().now - start))
        }
        return endings
    }

    private static func isNamed(_ name: String) -> Bool {
        let faults: [ErrorCode] = [.internalError, .connectionLost, .deadlineExceeded, .unavailable, .busy]
        return ErrorCode(rawValue: name).map { !faults.contains($0) } ?? false
    }

    func image(_ id: ObjectID, _ library: PhotoLibrary) async -> String? {
        do throws(RPCError) {
            let answer = try await library.thumbnailer.ask(
                ImageRequest(asset: id, targetSize: .size(width: 128, height: 128))
            )
            return answer.attachments.first?.isEmpty == false ? nil : "no image"
        } catch {
            return error.name
        }
    }

    func edit(_ id: ObjectID, _ library: PhotoLibrary) async -> String? {
        do throws(RPCError) {
            _ = try await library.editor.ask(
                ApplyEdit(asset: id, adjustments: AdjustmentList(operations: [.exposure(0.5)]))
            )
            return nil
        } catch {
            return error.name
        }
    }

    // MARK: The files

    func writeFiles(into folder: TemporaryFolder) throws -> [String] {
        var random = SeededRandom(named: "hostile files")
        var files: [String] = []
        func add(_ name: String, _ bytes: some Sequence<UInt8>) throws {
            files.append(try folder.write(bytes, to: "evil/" + name))
        }

        for (name, text) in HostileImages.texts { try add(name, text.utf8) }
        try add("claims.png", HostileImages.hugePNG(width: 60_000, height: 60_000))
        try add("claims less.png", HostileImages.hugePNG(width: 9000, height: 9000))
        try add("claims.bmp", HostileImages.hugeBMP(side: 60_000))
        try add("loop.tif", HostileImages.loopingTIFF)
        try add("frames.gif", TestImages.gif(frames: 100_000))
        for chunk in ["zTXt", "iTXt", "iCCP"] {
            try add("\(chunk).png", HostileImages.textBomb(chunk, bytes: 400_000_000))
        }
        for depth in [10, 1000, 100_000] { try add("nested \(depth).heic", HostileImages.nestedBoxes(depth: depth)) }

        let photo = TestImages.jpeg(width: 640, height: 480, date: "2024:06:01 12:30:00", latitude: 1, longitude: 2)
        for name in ["ephemeral:x.jpg", "@list.jpg", "-help.jpg", "a\nb\u{1B}[2J.jpg", "%d.jpg", "x.jpg[0-99999]"] {
            try add(name, TestImages.jpeg(seed: UInt64(files.count)))
        }
        for _ in 0..<(20 * Self.rounds) {
            try add("cut \(files.count).jpg", photo.prefix(Int.random(in: 0..<photo.count, using: &random)))
            // Truncated inside but with an end marker, as memory cards and recovery programs leave them.
            let cut = Int.random(in: 1000..<photo.count - 2, using: &random)
            try add("mended \(files.count).jpg", Array(photo.prefix(cut)) + [0xFF, 0xD9])
            var mutated = photo
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                mutated[Int.random(in: 2..<mutated.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            try add("mutated \(files.count).jpg", mutated)
        }
        for start: [UInt8] in [[], [0xFF, 0xD8, 0xFF], Array(TestImages.pngStart(width: 100, height: 100))] {
            for count in [0, 1, 100, 100_000] { try add("noise \(files.count).jpg", start + random.bytes(count)) }
        }
        let invalid = SharedPhotos.files(["jpg"], below: "exif-samples/jpg/invalid")
        let heic = SharedPhotos.files(["heic"], below: "exif-samples/heic")
        if invalid.isEmpty { try Needed.reportMissingPart("photographs: broken real files") }
        for file in invalid { try add(file.lastPathComponent, SharedPhotos.bytes(file)) }
        for file in heic.prefix(1) {
            let bytes = SharedPhotos.bytes(file)
            for part in [0.001, 0.01, 0.5, 0.99] {
                try add("cut \(part).heic", bytes.prefix(Int(Double(bytes.count) * part)))
            }
        }
        return files
    }
}

/// The peak memory of any worker of the services.
private actor PeakMemory {
    private(set) var mebibytes: [String: Int] = [:]

    /// Samples until the task is cancelled; otherwise the peak of a replaced worker would be lost.
    func watch(_ clients: [ServiceClient]) async {
        while !Task.isCancelled {
            for client in clients {
                let name = client.address.path.map { ($0 as NSString).lastPathComponent } ?? ""
                for pid in (try? await client.workerIdentifiers()) ?? [] {
                    mebibytes[name] = max(mebibytes[name] ?? 0, ProcessStatus.peakResident(of: pid) / 1024)
                }
            }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }
}
