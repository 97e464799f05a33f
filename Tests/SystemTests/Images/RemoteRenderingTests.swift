import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A thumbnailer and an editor without access to the library's folder, as on another machine: they read originals over
/// TCP.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct RemoteRenderingTests {
    /// The folder of the other machine's caches and sockets.
    private let folder: TemporaryFolder
    private let network: NetworkFixture

    init() throws {
        folder = try TemporaryFolder("remote")
        network = try NetworkFixture(withThumbnailer: true)
        let creation = try network.services.safelight([
            "keys", "create", "remote", "--domain", "requests,feed,services",
        ])
        guard creation.status == 0 else { throw FixtureError(description: creation.errors) }
    }

    private var environment: [String: String] {
        network.variables("remote").merging([
            "SAFELIGHT_RUN": folder.file("run"), "XDG_CACHE_HOME": folder.file("cache"),
            "SAFELIGHT_THUMBNAILER": "ipc://\(folder.file("run"))/thumbnailer.sock",
            "SAFELIGHT_EDITOR": "ipc://\(folder.file("run"))/editor.sock",
            "SAFELIGHT_EDITS": "ipc://\(folder.file("run"))/edits.sock",
            "SAFELIGHT_REMOTE_RESOURCES": "true", "SAFELIGHT_LIBRARY": "/nonexistent/library",
            "PATH": network.services.environment["PATH"] ?? "",
        ]) { $1 }
    }

    private func start(_ service: String = "thumbnailer") throws -> RunningProgram {
        let program = try RunningProgram(service, ["--ready-fd", "1"], environment: environment)
        guard program.waitForOutput("ready") else { throw FixtureError(description: program.errorText) }
        return program
    }

    private func add(_ bytes: Bytes, _ name: String, _ library: PhotoLibrary) async throws -> ObjectID {
        try await library.createAsset(path: network.services.folder.write(bytes, to: name))
    }

    private static func image(_ id: ObjectID, _ side: Int = 200) -> ImageRequest {
        ImageRequest(asset: id, targetSize: .size(width: side, height: side), deliveryMode: .highQualityFormat)
    }

    /// The files that are being transferred.
    private var incoming: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.file("cache/safelight/originals/.incoming"))) ?? []
    }

    @Test func `remote images equal those of a local thumbnailer, and no file of the library is opened`() async throws {
        let program = try start()
        let (library, remote) = (
            try network.services.library(), try NetworkFixture.library(variables: environment)
        )
        try FFmpegVideos.make(network.services.folder.file("film.mov"), ["-c:v", "libx264", "-pix_fmt", "yuv420p"])
        let video = Array(try Data(contentsOf: URL(filePath: network.services.folder.file("film.mov"))))
        var ids = [try await add(video, "again.mov", library)]
        for seed in 0..<4 {
            let photo = TestImages.jpeg(width: 900, height: 600, seed: UInt64(seed))
            ids.append(try await add(photo, "\(seed).jpg", library))
        }
        for id in ids {
            let local = try await library.thumbnailer.ask(Self.image(id))
            let transferred = try await remote.thumbnailer.ask(Self.image(id))
            #expect(local.attachments == transferred.attachments, "\(id)")
            #expect(try await remote.thumbnailer.ask(Self.image(id)).result.isCacheHit)
        }
        // A change is seen by the next request.
        _ = try await library.perform([.deleteAssets(.init(ids: [ids[1]]))])
        let error = await #expect(throws: RPCError.self) { try await remote.thumbnailer.ask(Self.image(ids[1])) }
        #expect(error?.errorCode == .identifierNotFound)
        let sheet = try await remote.thumbnailer.ask(
            ImageSheet(assets: Array(ids.dropFirst(2))),
            deadline: .seconds(60)
        )
        #expect(!sheet.attachments.isEmpty)
        let descriptors = "/proc/\(program.processIdentifier)/fd"
        let opened = try FileManager.default.contentsOfDirectory(atPath: descriptors).compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "\(descriptors)/\($0)")
        }
        #expect(!opened.contains { $0.hasPrefix(network.services.folder.path) }, "\(opened)")
        let metrics = try await remote.thumbnailer.metrics()["originals"]
        #expect(metrics?["transferred"]?.intValue == 5, "\(metrics ?? .null)")
        #expect(try await remote.thumbnailer.health().isHealthy)
        for client in [library, remote] { await client.close() }
        program.signal(SIGTERM)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        #expect(network.services.stop() == [])
    }

    @Test func `a remote editor edits, undoes and restores versions, as a local one does`() async throws {
        let program = try start("editor")
        try network.services.start([.editor])
        let (library, remote) = (
            try network.services.library(), try NetworkFixture.library(variables: environment)
        )
        var ids: [ObjectID] = []
        for number in 0..<2 {
            // The same pixels in other files.
            let photo = TestImages.jpeg(width: 300, height: 200, seed: 5) + [UInt8(number)]
            ids.append(try await add(photo, "\(number).jpg", library))
        }
        func digests(_ editor: ServiceClient, _ id: ObjectID) async throws -> [String?] {
            var renders: [String?] = []
            func appendDigest() async throws {
                var fetch = FetchDescription(.assets)
                fetch.ids = [id]
                let asset = try await library.catalog.ask(FetchAssets(fetch: fetch, count: 1)).result.assets.first
                renders.append(asset?.currentResource?.digest)
            }
            for value in [0.5, -0.5] {
                let list = AdjustmentList(operations: [.exposure(value)])
                _ = try await editor.ask(ApplyEdit(asset: id, adjustments: list))
                try await appendDigest()
            }
            let history = try await editor.ask(EditHistory(asset: id)).result
            #expect(history.steps.count == 2 && history.steps.allSatisfy { $0.adjustments != nil })
            _ = try await editor.ask(UndoEdits(asset: id, step: 1))
            try await appendDigest()
            _ = try await editor.ask(RevertEdit(asset: id))
            try await appendDigest()
            return renders
        }
        let localRenders = try await digests(library.editor, ids[0])
        let remoteRenders = try await digests(remote.editor, ids[1])
        #expect(localRenders.dropLast() == remoteRenders.dropLast(), "at the end, each has its own original again")
        #expect(Set(localRenders).count == 3 && localRenders[0] == localRenders[2], "\(localRenders)")
        for client in [library, remote] { await client.close() }
        program.signal(SIGTERM)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        #expect(network.services.stop() == [])
    }

    @Test func `a kill of either side in a transfer leaves no file, and the next request has the image`() async throws {
        var program = try start()
        let (library, remote) = (
            try network.services.library(), try NetworkFixture.library(variables: environment)
        )
        for (number, killsCatalog) in [false, true].enumerated() {
            let id = try await add(TestImages.jpeg(mebibytesAfter: 96, seed: UInt64(number)), "\(number).jpg", library)
            async let answer = try? remote.thumbnailer.ask(Self.image(id), deadline: .seconds(30))
            try await waitUntil("a transfer has begun", seconds: 30) { !incoming.isEmpty }
            if killsCatalog {
                try network.services.restart(.catalog)
            } else {
                program.killHard()
                program = try start()
                #expect(incoming.isEmpty)
            }
            _ = await answer
            if killsCatalog { break }
            let there = try await remote.thumbnailer.ask(Self.image(id), deadline: .seconds(60))
            #expect(there.attachments == (try await library.thumbnailer.ask(Self.image(id))).attachments)
        }
        // The request is answered before the transfer has removed its partial file.
        try await waitUntil("nothing is left", seconds: 30) { incoming.isEmpty }
        for client in [library, remote] { await client.close() }
        program.signal(SIGTERM)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        #expect(network.services.stop() == [])
    }
}
