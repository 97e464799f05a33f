import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Edits of videos through the real services.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct VideoEditingTests {
    private func list(_ operations: [(AdjustmentKind, JSONObject)]) throws -> AdjustmentList {
        AdjustmentList(operations: try operations.map { try Adjustment($0.0, $0.1) })
    }

    private func bytes(_ library: PhotoLibrary, _ id: ObjectID, _ type: ResourceType) async throws -> Bytes {
        try await library.resource(asset: id, type: type).readAll(limit: 64 << 20)
    }

    private func importVideo(_ services: SafelightFixture, seconds: Double = 2, size: String = "640x480") throws
        -> ObjectID
    {
        let path = services.folder.file("film.mp4")
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        let metadata = ["-metadata", "location=+52.5200+013.4050/", "-metadata", "creation_time=2023-05-06T07:08:09Z"]
        try FFmpegVideos.make(path, size: size, seconds: seconds, h264 + metadata)
        let run = try services.safelight(["import", path])
        #expect(run.status == 0, "\(run)")
        let ids = try services.safelight(["fetch", "--where", "mediaType == 'video'", "--ids"]).output
        return try #require(ids.split(separator: "\n").first.flatMap { ObjectID(String($0)) })
    }

    @Test(.spec("S-85", "S-92"))
    func `a video is edited, edited again, undone and reverted, and its original stays`() async throws {
        let services = try SafelightFixture("video-edits")
        try services.start([.catalog, .changeBroker, .thumbnailer, .editor])
        let id = try importVideo(services)
        let library = try services.library()
        let original = try await bytes(library, id, .video)
        let imported = try await library.asset(id)

        let crop: JSONObject = ["x": 0.25, "y": 0, "width": 0.5, "height": 1]
        let first = try list([(.timeRange, ["start": 0.5, "end": 1.5]), (.exposure, ["value": 0.5]), (.crop, crop)])
        _ = try await library.editor.ask(ApplyEdit(asset: id, adjustments: first)).result
        var asset = try await library.asset(id)
        #expect((asset.pixelWidth, asset.pixelHeight) == (320, 480))
        #expect(abs(asset.duration - 1_000_000) < 100_000 && asset.mediaType == .video)
        #expect(asset.resources.map(\.type) == [.video, .fullSizeVideo, .adjustmentData])
        #expect(try await bytes(library, id, .video) == original)
        #expect(asset.creationDate == imported.creationDate && asset.location == imported.location)
        let saved = services.folder.file("edited.mp4")
        #expect(try services.safelight(["video", id.text, "--output", saved]).status == 0)
        let probe = try FFmpegVideos.probe(saved)
        #expect(probe.contains("\"width\": 320") && probe.contains("\"codec_name\": \"aac\""))
        #expect(probe.contains("2023-05-06T07:08:09"), "the date is in the render")

        // A second edit replaces the first: it starts from the original again.
        _ = try await library.editor.ask(ApplyEdit(asset: id, adjustments: try list([(.rotate, ["value": 90])])))
        asset = try await library.asset(id)
        #expect((asset.pixelWidth, asset.pixelHeight) == (480, 640) && abs(asset.duration - 2_000_000) < 100_000)
        // Append keeps the operations.
        let half = try list([(.speed, ["value": 2])])
        _ = try await library.editor.ask(ApplyEdit(asset: id, adjustments: half, mode: .append))
        asset = try await library.asset(id)
        #expect((asset.pixelWidth, asset.pixelHeight) == (480, 640) && abs(asset.duration - 1_000_000) < 100_000)

        let history = try await library.editor.ask(EditHistory(asset: id)).result
        #expect(history.steps.map(\.kind) == [.edit, .edit, .edit])
        _ = try await library.editor.ask(UndoEdits(asset: id, step: 1))
        asset = try await library.asset(id)
        #expect((asset.pixelWidth, asset.pixelHeight) == (320, 480))
        _ = try await library.editor.ask(RevertEdit(asset: id))
        asset = try await library.asset(id)
        #expect((asset.pixelWidth, asset.pixelHeight) == (640, 480) && !asset.hasAdjustments)
        #expect(asset.resources.map(\.type) == [.video])
        #expect(services.stop() == [])
    }

    @Test(.spec("S-87"))
    func `videos have previews and comparisons, and an edit may follow another program's`() async throws {
        let services = try SafelightFixture("video-previews")
        try services.start([.catalog, .changeBroker, .thumbnailer, .editor])
        let id = try importVideo(services)
        let library = try services.library()
        let grey = try list([(.blackAndWhite, [:]), (.rotate, ["value": 90])])
        let preview = try await library.editor.ask(
            PreviewEdit(asset: id, adjustments: grey, maximumSide: 320, frameTime: 1_000_000)
        )
        #expect((preview.result.pixelWidth, preview.result.pixelHeight) == (240, 320))
        #expect(preview.attachments.first?.starts(with: [0xFF, 0xD8]) == true)

        for (kind, members) in [(AdjustmentKind.clarity, ["value": 0.5] as JSONObject), (.vignette, ["value": 0.5])] {
            let list = try list([(kind, members)])
            for error in [
                await library.editor.rpcError(of: ApplyEdit(asset: id, adjustments: list)),
                await library.editor.rpcError(of: PreviewEdit(asset: id, adjustments: list)),
            ] {
                #expect(error?.errorCode == .requestNotSupported, "\(kind): \(String(describing: error))")
                #expect(error?.message.contains("\"\(kind.rawValue)\"") == true)
            }
        }
        let photo = try services.folder.write(TestImages.jpeg(width: 64, height: 48), to: "photo.jpg")
        #expect(try services.safelight(["import", photo]).status == 0)
        let ids = try services.safelight(["fetch", "--where", "mediaType == 'image'", "--ids"]).output
        let still = try #require(ids.split(separator: "\n").first.flatMap { ObjectID(String($0)) })
        let onPhoto = await library.editor.rpcError(
            of: ApplyEdit(asset: still, adjustments: try list([(.volume, ["value": 0.5])]))
        )
        #expect(onPhoto?.errorCode == .requestNotSupported && onPhoto?.message.contains("volume") == true)

        // Another program's edit is stored unchanged; this editor starts from its render.
        let render = services.folder.file("render.mp4")
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        try FFmpegVideos.make(render, size: "320x240", seconds: 1, h264)
        let foreign = ChangeRequest.EditAsset(
            id: id,
            render: NewResource(type: .fullSizeVideo, source: .attachment(0)),
            adjustmentData: AdjustmentData(formatIdentifier: "org.example.a", formatVersion: "1", attachment: 1)
        )
        _ = try await library.catalog.ask(
            PerformChanges(requests: [.editAsset(foreign)]),
            attachments: [Bytes(try Data(contentsOf: URL(fileURLWithPath: render))), [1]]
        )
        let turned = try list([(.rotate, ["value": 90])])
        _ = try await library.editor.ask(ApplyEdit(asset: id, adjustments: turned))
        var asset = try await library.asset(id)
        #expect((asset.pixelWidth, asset.pixelHeight) == (240, 320))
        // The other program's render is not stored any more, so a further edit starts from the current version.
        _ = try await library.editor.ask(ApplyEdit(asset: id, adjustments: turned))
        asset = try await library.asset(id)
        #expect((asset.pixelWidth, asset.pixelHeight) == (320, 240))
        let compared = try await library.editor.ask(CompareEdit(asset: id, maximumSide: 200))
        #expect(compared.attachments.first?.isEmpty == false)
        #expect(services.stop() == [])
    }

    @Test func `edits of videos report progress and can be cancelled, sent by commands and published`() async throws {
        let services = try SafelightFixture("video-progress")
        try services.start([.catalog, .changeBroker, .thumbnailer, .editor])
        let id = try importVideo(services, seconds: 20, size: "1280x720")
        let library = try services.library()
        let warm = try list([(.temperature, ["value": 0.3])])
        var parts: [Double] = []
        for try await event in library.editor.stream(ApplyEdits(asset: id, adjustments: warm), credit: 1 << 16) {
            guard case .notification(_, let params, _) = event else { continue }
            parts.append(params["part"]?.doubleValue ?? -1)
        }
        #expect(parts.count > 3 && parts == parts.sorted() && parts.allSatisfy { (0...1).contains($0) }, "\(parts)")

        // A cancelled request commits nothing: it is not among the steps below.
        for try await event in library.editor.stream(
            ApplyEdits(asset: id, adjustments: AdjustmentList(operations: [.sepia(1)])),
            credit: 1 << 16
        ) {
            guard case .notification = event else { continue }
            break
        }
        let run = try services.safelight(
            ["edit", id.text, "--operation", "timeRange:start=1,end=2", "--operation", "volume:value=0"]
        )
        #expect(run.status == 0, "\(run)")
        let asset = try await library.asset(id)
        #expect(abs(asset.duration - 1_000_000) < 100_000)
        let edits = services.folder.file("edits.jsonl")
        let line =
            "{\"asset\": \"\(id.text)\", \"adjustments\": {\"version\": 1, \"operations\": ["
            + "{\"operation\": \"timeRange\", \"start\": 0, \"end\": 3}]}}\n"
        try Data(line.utf8).write(to: URL(fileURLWithPath: edits))
        let published = try services.safelight(["publish", edits])
        #expect(published.status == 0, "\(published)")
        #expect(abs(try await library.asset(id).duration - 3_000_000) < 100_000)
        let steps = try await library.editor.ask(EditHistory(asset: id)).result.steps
        #expect(steps.count == 3 && !steps.contains { $0.adjustments?.text.contains("sepia") == true })
        #expect(services.stop() == [])
    }
}
