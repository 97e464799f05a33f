import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Editing through the real services: edits by other programs, operation lists, history and copies.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct EditingTests {
    func list(_ operations: Adjustment...) -> AdjustmentList { AdjustmentList(operations: operations) }

    func bytes(_ library: PhotoLibrary, _ id: ObjectID, _ type: ResourceType) async throws -> Bytes {
        try await library.resource(asset: id, type: type).readAll(limit: 64 << 20)
    }

    func services(_ name: String, images: Int) async throws -> (SafelightFixture, PhotoLibrary, [ObjectID]) {
        let services = try SafelightFixture(name)
        try services.start([.catalog, .editor])
        let library = try services.library()
        var requests: [ChangeRequest] = []
        var attachments: [Bytes] = []
        for index in 0..<images {
            attachments.append(
                TestImages.jpeg(
                    width: 240,
                    height: 160,
                    date: "2024:06:01 12:30:00",
                    offset: "+02:00",
                    latitude: 47.5,
                    longitude: 8.5,
                    seed: UInt64(index + 1)
                )
            )
            requests.append(
                .createAsset(.init(ref: "p\(index)", resources: [NewResource(source: .attachment(index))]))
            )
        }
        let result = try await library.catalog.ask(PerformChanges(requests: requests), attachments: attachments).result
        return (services, library, try (0..<images).map { try #require(result.id("p\($0)")) })
    }

    /// Edits as another program: begins editing, supplies a render of its own, and commits with the token.
    func edit(
        _ library: PhotoLibrary,
        _ id: ObjectID,
        as format: String,
        seed: UInt64,
        data: Bytes
    ) async throws -> ServiceResponse<BeginEditing.Result> {
        let input = try await library.editor.ask(
            BeginEditing(
                asset: id,
                canHandle: [HandledFormat(formatIdentifier: format, minimumVersion: "1", maximumVersion: "2")]
            )
        )
        let edit = ChangeRequest.EditAsset(
            id: id,
            render: NewResource(type: .fullSizePhoto, source: .attachment(0)),
            adjustmentData: AdjustmentData(formatIdentifier: format, formatVersion: "1.5", attachment: 1),
            inputToken: input.result.inputToken
        )
        _ = try await library.catalog.ask(
            PerformChanges(requests: [.editAsset(edit)]),
            attachments: [TestImages.jpeg(width: 200, height: 100, seed: seed), data]
        )
        return input
    }

    @Test(.spec("S-85", "S-86", "S-88", "S-89", "S-90", "S-92", "T-09", "T-23", "P-27", "P-28", "D4"))
    func `two programs edit in turn, each receives the input that its format allows, and a revert discards both edits`()
        async throws
    {
        let (services, library, ids) = try await services("editors", images: 1)
        let id = ids[0]
        let original = try await bytes(library, id, .photo)
        let opaque: Bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

        var response = try await edit(library, id, as: "org.example.a", seed: 11, data: opaque)
        #expect(response.result.version == .original && response.result.adjustmentData == nil)
        #expect(response.result.input.map { response.attachments[$0] } == original)
        #expect(response.result.supportedRenderTypes.first == "public.jpeg")
        #expect(response.result.displaySizeImage != nil && response.result.orientation == 1)
        #expect(try await bytes(library, id, .adjustmentData) == opaque, "stored byte for byte")
        let first = try await bytes(library, id, .fullSizePhoto)

        response = try await edit(library, id, as: "org.example.a", seed: 12, data: [0, 1, 0])
        #expect(response.result.version == .original && response.result.formatVersion == "1.5")
        #expect(response.result.adjustmentData.map { response.attachments[$0] } == opaque)
        let second = try await bytes(library, id, .fullSizePhoto)
        #expect(first != second)

        response = try await edit(library, id, as: "org.example.b", seed: 13, data: [2])
        #expect(response.result.version == .current && response.result.adjustmentData == nil)
        #expect(response.result.input.map { response.attachments[$0] } == second)
        #expect(try await bytes(library, id, .adjustmentBasePhoto) == second)

        response = try await edit(library, id, as: "org.example.b", seed: 14, data: [3])
        #expect(response.result.version == .previous, "the previous version, not the original")
        #expect(response.result.input.map { response.attachments[$0] } == second)
        #expect(response.result.adjustmentData.map { response.attachments[$0] } == [2])
        let fourth = try await bytes(library, id, .fullSizePhoto)

        response = try await edit(library, id, as: "org.example.a", seed: 15, data: [4])
        #expect(response.result.version == .current && response.result.input.map { response.attachments[$0] } == fourth)

        // A token that is no longer current is a conflict whose error data has the current state.
        let edit = ChangeRequest.EditAsset(
            id: id,
            render: NewResource(type: .fullSizePhoto, source: .attachment(0)),
            adjustmentData: AdjustmentData(formatIdentifier: "org.example.a", formatVersion: "1", attachment: 1),
            inputToken: response.result.inputToken
        )
        let conflict = await #expect(throws: RPCError.self) {
            try await library.catalog.ask(
                PerformChanges(requests: [.editAsset(edit)]),
                attachments: [TestImages.jpeg(seed: 16), [5]]
            )
        }
        #expect(conflict?.errorCode == .conflict && conflict?.data["contentRevision"] != nil)
        let asset = try await library.asset(id)
        #expect(asset.adjustmentFormatIdentifier == "org.example.a" && asset.hasAdjustments)

        _ = try await library.editor.ask(RevertEdit(asset: id))
        let reverted = try await library.asset(id)
        #expect(!reverted.hasAdjustments && (reverted.pixelWidth, reverted.pixelHeight) == (240, 160))
        #expect(reverted.resources.map(\.type) == [.photo])
        #expect(try await bytes(library, id, .photo) == original)
        #expect(reverted.creationDate == asset.creationDate && reverted.location == asset.location)
        await library.close()
        #expect(services.stop().isEmpty, "\(services.logs)")
    }

    @Test(.spec("S-87", "S-89"))
    func `earlier versions of a video are not stored: each program receives the current version`() async throws {
        let (services, library, _) = try await services("videos", images: 0)
        let original = TestVideos.video(width: 640, height: 480, duration: 2500)
        let result = try await library.catalog.ask(
            PerformChanges(
                requests: [.createAsset(.init(ref: "video", resources: [NewResource(source: .attachment(0))]))]
            ),
            attachments: [original]
        ).result
        let id = try #require(result.id("video"))
        let untouched = try await library.asset(id)

        /// Edits the video as a program that reads adjustment data of its own format.
        func edit(as format: String, _ render: Bytes, data: Bytes) async throws -> ServiceResponse<BeginEditing.Result>
        {
            let input = try await library.editor.ask(
                BeginEditing(asset: id, canHandle: [HandledFormat(formatIdentifier: format)])
            )
            let edit = ChangeRequest.EditAsset(
                id: id,
                render: NewResource(type: .fullSizeVideo, source: .attachment(0)),
                adjustmentData: AdjustmentData(formatIdentifier: format, formatVersion: "1", attachment: 1),
                inputToken: input.result.inputToken
            )
            let requests = [ChangeRequest.editAsset(edit)]
            _ = try await library.catalog.ask(PerformChanges(requests: requests), attachments: [render, data])
            return input
        }
        func input(_ response: ServiceResponse<BeginEditing.Result>) -> Bytes? {
            response.result.input.map { response.attachments[$0] }
        }

        let byA = TestVideos.video(width: 320, height: 240, duration: 2000)
        let byB = TestVideos.video(brand: "mp42", width: 200, height: 100, duration: 1000)
        var response = try await edit(as: "org.example.a", byA, data: [1])
        #expect(response.result.version == .original && input(response) == original)
        #expect(!response.result.isPreviousAvailable && response.result.displaySizeImage == nil)
        #expect(response.result.supportedRenderTypes == ["com.apple.quicktime-movie", "public.mpeg-4"])

        // Program A again: it receives its own data, but the current version and no earlier one.
        response = try await library.editor.ask(
            BeginEditing(asset: id, canHandle: [HandledFormat(formatIdentifier: "org.example.a")])
        )
        #expect(response.result.version == .current && input(response) == byA && !response.result.isPreviousAvailable)
        #expect(response.result.adjustmentData.map { response.attachments[$0] } == [1])

        response = try await edit(as: "org.example.b", byB, data: [2])
        #expect(response.result.version == .current && input(response) == byA && !response.result.isPreviousAvailable)
        #expect(response.result.adjustmentData == nil && response.result.formatIdentifier == nil)

        response = try await library.editor.ask(
            BeginEditing(asset: id, canHandle: [HandledFormat(formatIdentifier: "org.example.a")])
        )
        #expect(response.result.version == .current && input(response) == byB)
        #expect(response.result.adjustmentData == nil, "A's adjustment data no longer applies")

        let edited = try await library.asset(id)
        #expect(edited.resources.map(\.type) == [.video, .fullSizeVideo, .adjustmentData])
        #expect((edited.pixelWidth, edited.pixelHeight, edited.duration) == (200, 100, 1_000_000))
        #expect(try await bytes(library, id, .fullSizeVideo) == byB)
        let history = try await library.editor.ask(EditHistory(asset: id)).result
        #expect(history.steps.map(\.formatIdentifier) == ["org.example.a", "org.example.b"])
        #expect(history.steps.allSatisfy { $0.base == nil && $0.render != nil })

        let image = await #expect(throws: RPCError.self) {
            try await edit(as: "org.example.b", TestImages.jpeg(seed: 3), data: [3])
        }
        #expect(image?.errorCode == .requestNotSupported, "an image is not a valid render of a video")
        let own = await #expect(throws: RPCError.self) {
            try await library.editor.ask(ApplyEdit(asset: id, adjustments: list(.exposure(1))))
        }
        #expect(own?.errorCode == .invalidResource, "the video of this test has a header and no frames")

        _ = try await library.editor.ask(RevertEdit(asset: id))
        let reverted = try await library.asset(id)
        #expect(reverted.resources == untouched.resources && reverted.duration == 2_500_000)
        #expect((reverted.pixelWidth, reverted.pixelHeight) == (640, 480) && !reverted.hasAdjustments)
        #expect(try await bytes(library, id, .video) == original)
        await library.close()
        #expect(services.stop().isEmpty, "\(services.logs)")
    }

    @Test(.spec("S-83", "S-89", "T-23"))
    func `several edits are one transaction: with one bad render none is applied`() async throws {
        let (services, library, ids) = try await services("several", images: 3)
        func edit(_ index: Int, _ attachment: Int) -> ChangeRequest {
            .editAsset(
                ChangeRequest.EditAsset(
                    id: ids[index],
                    render: NewResource(type: .fullSizePhoto, source: .attachment(attachment)),
                    adjustmentData: AdjustmentData(formatIdentifier: "x", formatVersion: "1", attachment: 3)
                )
            )
        }
        let good = TestImages.jpeg(seed: 9)
        let bad: [(Bytes, ErrorCode)] = [
            (Array("no picture".utf8), .invalidResource), (TestImages.jpeg(orientation: 6), .invalidResource),
            (Bytes(base64: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"), .unsupportedFormat),
        ]
        for (render, refusal) in bad {
            let error = await #expect(throws: RPCError.self) {
                try await library.catalog.ask(
                    PerformChanges(requests: [edit(0, 0), edit(1, 1), edit(2, 2)]),
                    attachments: [good, render, good, [1]]
                )
            }
            #expect(
                error?.errorCode == refusal && error?.data["request"]?.intValue == 1,
                "\(String(describing: error))"
            )
        }
        for id in ids { #expect(try await !library.asset(id).hasAdjustments) }
        let before = try await library.currentToken().token
        let done = try await library.catalog.ask(
            PerformChanges(
                requests: [
                    edit(0, 0), edit(1, 1), .updateAsset(.init(id: .id(ids[2]), set: AssetPatch(isFavorite: true))),
                ]
            ),
            attachments: [good, TestImages.jpeg(seed: 10), good, [1]]
        ).result
        #expect(done.sequence == before.sequence + 1, "edits and metadata in one transaction")
        await library.close()
        #expect(services.stop().isEmpty, "\(services.logs)")
    }

    @Test(.spec("S-91", "S-92"))
    func `a resumed edit renders from the original, history restores, copied and batched edits have equal bytes`()
        async throws
    {
        let (services, library, ids) = try await services("history", images: 4)
        let editor = library.editor
        func render(_ id: ObjectID) async throws -> Bytes { try await bytes(library, id, .fullSizePhoto) }

        _ = try await editor.ask(ApplyEdit(asset: ids[0], adjustments: list(.sepia(0.8))))
        let strong = try await render(ids[0])
        _ = try await editor.ask(ApplyEdit(asset: ids[0], adjustments: list(.sepia(0.3))))
        let weak = try await render(ids[0])
        _ = try await editor.ask(RevertEdit(asset: ids[0]))
        _ = try await editor.ask(ApplyEdit(asset: ids[0], adjustments: list(.sepia(0.3))))
        #expect(try await render(ids[0]) == weak, "sepia 0.3 on the original, not on sepia")
        #expect(strong != weak)

        var history = try await editor.ask(EditHistory(asset: ids[0])).result
        #expect(history.isComplete && history.steps.map(\.kind) == [.edit, .edit, .revert, .edit])
        #expect(history.steps[0].adjustments == list(.sepia(0.8)).json)
        #expect(history.steps.allSatisfy { $0.kind == .revert || $0.base == history.steps[0].base })
        _ = try await editor.ask(UndoEdits(asset: ids[0], step: 1))
        #expect(try await render(ids[0]) == strong)
        _ = try await editor.ask(UndoEdits(asset: ids[0], step: 0))
        #expect(try await !library.asset(ids[0]).hasAdjustments)
        _ = try await editor.ask(UndoEdits(asset: ids[0]))
        #expect(try await render(ids[0]) == strong, "restored the step before the revert")
        history = try await editor.ask(EditHistory(asset: ids[0])).result
        #expect(history.steps.count == 7, "restoring a step is itself a step")
        let outOfRange = await #expect(throws: RPCError.self) {
            try await editor.ask(UndoEdits(asset: ids[0], step: 99))
        }
        #expect(outOfRange?.errorCode == .rangeError)

        // A copied edit is rendered from each target's own original; a batch reports the outcome of each asset.
        let crop = Adjustment.crop(UnitRect(x: 0, y: 0, width: 0.5, height: 0.5))
        _ = try await editor.ask(ApplyEdit(asset: ids[0], adjustments: list(crop, .exposure(0.5))))
        let copy = CopyEdits(from: ids[0], to: Array(ids[1...2]), includesGeometry: false)
        let copied = try await editor.ask(copy).result
        #expect(copied.done == 2 && copied.failed == 0)
        #expect(try await bytes(library, ids[1], .adjustmentData) == list(.exposure(0.5)).json.bytes)
        #expect(try await library.asset(ids[1]).pixelWidth == 240, "without the crop")
        let unknownAsset = ObjectID(.asset, milliseconds: 5, using: &Self.seeded)
        let batch = try await editor.ask(
            ApplyEdits(
                assets: [ids[1], unknownAsset, ids[3]],
                adjustments: list(.saturation(-1)),
                mode: .append,
                transaction: "batch"
            )
        ).result
        #expect(batch.done == 2 && batch.failed == 1)
        #expect(batch.results[1]["error"]?["name"]?.stringValue == "identifier_not_found")
        let again = try await editor.ask(
            ApplyEdits(assets: [ids[1]], adjustments: list(.saturation(-1)), mode: .append, transaction: "batch")
        ).result
        #expect(again.results[0]["sequence"] == batch.results[0]["sequence"], "applied once per transaction")
        let dry = try await editor.ask(
            ApplyEdits(fetch: FetchDescription(.assets), adjustments: list(.exposure(1)), isDryRun: true)
        ).result
        #expect(dry.done == 4 && dry.isDryRun && !dry.isChanged)

        // Of two edits with the same revision one succeeds, and the other's error has the current revision.
        let revision = try await library.asset(ids[3]).revision
        async let left = try? editor.ask(
            ApplyEdits(asset: ids[3], adjustments: list(.exposure(1)), ifRevision: revision)
        )
        async let right = try? editor.ask(
            ApplyEdits(asset: ids[3], adjustments: list(.exposure(2)), ifRevision: revision)
        )
        let winners = [await left, await right].compactMap { $0 }
        #expect(winners.count == 1)
        let currentRevision = try await library.asset(ids[3]).revision
        let loser = await #expect(throws: RPCError.self) {
            try await editor.ask(ApplyEdits(asset: ids[3], adjustments: list(.exposure(2)), ifRevision: revision))
        }
        #expect(loser?.errorCode == .conflict && loser?.data["revision"]?.stringValue == currentRevision.description)

        let suggested = try await editor.ask(SuggestEdit(asset: ids[2])).result.adjustments
        #expect(!suggested.operations.isEmpty)
        _ = try await editor.ask(ApplyEdits(asset: ids[2], enhances: true))
        #expect(try await bytes(library, ids[2], .adjustmentData) == suggested.json.bytes, "stored as explicit values")

        let compared = try await editor.ask(CompareEdit(asset: ids[1], maximumSide: 100))
        #expect((compared.result.pixelWidth, compared.result.pixelHeight) == (208, 67))
        let labelled = try await editor.ask(CompareEdit(asset: ids[1], maximumSide: 100, hasLabels: true))
        #expect((labelled.result.pixelWidth, labelled.result.pixelHeight) == (208, 91))
        let files = services.folder.file("out")
        let exported = try services.safelight(["export", ids[1].text, "-o", files, "--current", "--sidecar"])
        #expect(exported.status == 0, "\(exported.errors)")
        let names = try FileManager.default.contentsOfDirectory(atPath: files).sorted()
        #expect(names.count == 2 && names[1].hasSuffix(".xmp"))
        let sidecar = try String(contentsOfFile: files + "/" + (names.last ?? ""), encoding: .utf8)
        #expect(sidecar.contains("safelight:history") && sidecar.contains("2024-06-01T12:30:00"))
        await library.close()
        #expect(services.stop().isEmpty, "\(services.logs)")
    }

    nonisolated(unsafe) private static var seeded = SeededRandom(seed: 5)
}

extension [UInt8] {
    fileprivate init(base64 text: String) { self = Array(Data(base64Encoded: text) ?? Data()) }
}
