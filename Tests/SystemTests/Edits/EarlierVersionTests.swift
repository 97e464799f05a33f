import Basics
import Contracts
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The editor's own edits of photos that other programs have edited.
extension EditingTests {
    @Test(.spec("S-86", "S-91", "S-92", "D4"))
    func `the editor's own edits start from another program's version, and an undo brings that version back`()
        async throws
    {
        let (services, library, ids) = try await services("versions", images: 1)
        let (id, editor) = (ids[0], library.editor)
        func render() async throws -> Bytes { try await bytes(library, id, .fullSizePhoto) }
        func begin(_ format: String) async throws -> ServiceResponse<BeginEditing.Result> {
            try await editor.ask(
                BeginEditing(
                    asset: id,
                    canHandle: [HandledFormat(formatIdentifier: format)],
                    skipsDisplaySizeImage: true
                )
            )
        }
        /// Returns the render of the list from an original with these bytes.
        func fresh(_ original: Bytes, _ list: AdjustmentList) async throws -> Bytes {
            let result = try await library.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))], ifDuplicate: .create))],
                attachments: [original]
            )
            let copy = try #require(result.id("a"))
            _ = try await editor.ask(ApplyEdit(asset: copy, adjustments: list))
            return try await bytes(library, copy, .fullSizePhoto)
        }

        _ = try await edit(library, id, as: "org.example.a", seed: 21, data: [1, 0, 2])
        let foreign = try await render()
        let suggested = try await editor.ask(SuggestEdit(asset: id)).result.adjustments
        let preview = try await editor.ask(
            PreviewEdit(asset: id, adjustments: list(.sepia(0.7)), maximumSide: 4096)
        ).result
        #expect((preview.pixelWidth, preview.pixelHeight) == (200, 100), "the preview shows what apply would commit")
        _ = try await editor.ask(ApplyEdit(asset: id, adjustments: list(.sepia(0.7))))
        let sepia = try await render()
        #expect(try await bytes(library, id, .adjustmentBasePhoto) == foreign)
        #expect(try await sepia == fresh(foreign, list(.sepia(0.7))), "sepia on what was shown")
        #expect(try await begin("org.example.a").result.version == .current)
        _ = try await editor.ask(ApplyEdit(asset: id, adjustments: list(.exposure(0.4))))
        #expect(
            try await bytes(library, id, .adjustmentBasePhoto) == foreign,
            "our own edit starts from its base again"
        )
        #expect(try await render() == fresh(foreign, list(.exposure(0.4))))
        _ = try await editor.ask(ApplyEdit(asset: id, adjustments: list(.sepia(0.2)), mode: .append))
        #expect(try await render() == fresh(foreign, list(.exposure(0.4), .sepia(0.2))))
        #expect(try await editor.ask(SuggestEdit(asset: id)).result.adjustments == suggested)

        // Steps 1 to 4: the other program's edit, sepia, exposure, exposure and sepia.
        _ = try await editor.ask(UndoEdits(asset: id, step: 1))
        #expect(try await render() == foreign)
        #expect(try await bytes(library, id, .adjustmentData) == [1, 0, 2])
        var input = try await begin("org.example.a")
        #expect(input.result.version == .original && input.result.formatVersion == "1.5")
        #expect(input.result.adjustmentData.map { input.attachments[$0] } == [1, 0, 2])
        #expect(try await library.asset(id).resource(.adjustmentBasePhoto) == nil)
        _ = try await editor.ask(UndoEdits(asset: id, step: 2))
        #expect(try await render() == sepia)
        _ = try await editor.ask(UndoEdits(asset: id))
        #expect(try await render() == foreign, "without a step: the one before the last")

        // A second program on top of the first, then the editor on top of both.
        _ = try await edit(library, id, as: "org.example.b", seed: 22, data: [9])
        let second = try await render()
        _ = try await editor.ask(ApplyEdit(asset: id, adjustments: list(.blackAndWhite(1))))
        #expect(try await bytes(library, id, .adjustmentBasePhoto) == second)
        _ = try await editor.ask(UndoEdits(asset: id))
        #expect(try await render() == second)
        input = try await begin("org.example.b")
        #expect(input.result.version == .previous && input.result.input.map { input.attachments[$0] } == foreign)
        #expect(input.result.adjustmentData.map { input.attachments[$0] } == [9])
        let steps = try await editor.ask(EditHistory(asset: id)).result.steps
        #expect(steps.last?.formatIdentifier == "org.example.b" && steps.count == 10)

        // Published edits restore steps in the same way.
        _ = try await editor.ask(ApplyEdit(asset: id, adjustments: list(.blackAndWhite(1))))
        let publisher = try EditPublisher(library: library)
        let running = Task { try await publisher.run() }
        var publish = PublishEdit(id: "back", asset: id, adjustments: AdjustmentList())
        publish.step = 1
        try await publisher.publish(publish)
        await publisher.finish()
        try await running.value
        #expect(try await render() == foreign)

        _ = try await editor.ask(UndoEdits(asset: id, step: 0))
        #expect(try await library.asset(id).resources.map(\.type) == [.photo])
        // Images that only the other programs could make are stored for as long as the history.
        #expect(try services.safelight(["doctor", "--collect"]).output.contains("collected"))
        _ = try await editor.ask(UndoEdits(asset: id, step: 1))
        #expect(try await render() == foreign)
        _ = try await editor.ask(UndoEdits(asset: id, step: 10))
        #expect(try await render() == second)
        input = try await begin("org.example.b")
        #expect(input.result.version == .previous && input.result.input.map { input.attachments[$0] } == foreign)
        await library.close()
        #expect(services.stop().isEmpty, "\(services.logs)")
    }
}
