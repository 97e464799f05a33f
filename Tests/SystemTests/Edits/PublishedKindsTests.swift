import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Published edits have the same kinds as requests: copies, suggestions, reverts, steps of the history and presets.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct PublishedKindsTests {
    @Test func `a published edit copies, enhances, reverts and restores a step, each once`() async throws {
        let services = try SafelightFixture("kinds")
        try services.start()
        let library = try services.library()
        var ids: [ObjectID] = []
        for seed in 1...2 {
            let result = try await library.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
                attachments: [TestImages.jpeg(width: 96, height: 64, seed: UInt64(seed))]
            )
            ids.append(try #require(result.id("a")))
        }
        func list(_ id: ObjectID) async throws -> AdjustmentList? {
            guard try await library.asset(id).hasAdjustments else { return nil }
            let bytes = try await library.resource(asset: id, type: .adjustmentData).readAll(limit: 1 << 20)
            return try AdjustmentList(json: JSON(parsing: bytes))
        }
        let sepia = AdjustmentList(operations: [.sepia(0.5)])
        _ = try await library.editor.ask(ApplyEdit(asset: ids[0], adjustments: sepia))

        let publisher = try EditPublisher(library: library)
        let running = Task { try await publisher.run() }
        var updates = publisher.updates.makeAsyncIterator()
        /// Publishes an edit and returns its final state.
        func publish(_ id: String, _ asset: ObjectID, _ change: (inout PublishEdit) -> Void) async throws -> String {
            var edit = PublishEdit(id: id, asset: asset, adjustments: AdjustmentList())
            change(&edit)
            try await publisher.publish(edit)
            while let status = await updates.next(isolation: #isolation) {
                if status.edit.id == id, status.edit.state != .accepted {
                    return status.edit.errorName ?? status.edit.state.rawValue
                }
            }
            return "no status arrived"
        }
        #expect(try await publish("copied", ids[1]) { $0.source = ids[0] } == "applied")
        #expect(try await list(ids[1]) == sepia)
        #expect(try await publish("reverted", ids[1]) { $0.reverts = true } == "applied")
        #expect(try await list(ids[1]) == nil)
        #expect(try await publish("again", ids[1]) { $0.reverts = true } == "applied", "nothing is left to revert")
        #expect(try await publish("back", ids[1]) { $0.step = 1 } == "applied")
        #expect(try await list(ids[1]) == sepia)
        #expect(try await publish("original", ids[1]) { $0.step = 0 } == "applied")
        #expect(try await list(ids[1]) == nil)
        #expect(try await publish("far", ids[1]) { $0.step = 99 } == "range_error")
        #expect(try await publish("none", ids[0]) { $0.source = ids[1] } == "request_not_supported")
        #expect(try await publish("better", ids[0]) { $0.enhances = true } == "applied")
        let suggested = try await library.editor.ask(SuggestEdit(asset: ids[0])).result.adjustments
        #expect(try await list(ids[0]) == suggested)
        #expect(try await publish("both", ids[0]) { ($0.reverts, $0.step) = (true, 1) } == "invalid_params")
        await publisher.finish()
        try await running.value

        // Presets are named lists; the edit contains their values.
        let folder = ["--presets", services.folder.file("presets")]
        func run(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try services.safelight(arguments + folder)
        }
        #expect(try run("preset", "save", "Warm evening", "--temperature", "0.3", "--contrast", "0.1").status == 0)
        #expect(try run("preset", "save", "Warm evening", "--exposure", "1").status == 1, "not replaced unasked")
        #expect(try run("edit", ids[1].text, "--preset", "Warm evening", "--exposure", "0.2").status == 0)
        let expected = AdjustmentList(operations: [.temperature(0.3), .contrast(0.1), .exposure(0.2)])
        #expect(try await list(ids[1]) == expected)
        #expect(try run("preset", "take", "Taken", ids[1].text).status == 0)
        let bundle = try run("preset", "export").output
        let file = try services.folder.write(bundle.utf8, to: "bundle.json")
        let other = ["--presets", services.folder.file("others")]
        #expect(try services.safelight(["preset", "import", file] + other).status == 0)
        #expect(try services.safelight(["preset", "export"] + other).output == bundle)
        let shown = try run("preset", "show", "Taken").output
        #expect(try AdjustmentList(json: JSON(parsing: Array(shown.utf8))) == expected)
        #expect(try run("preset", "remove", "Taken").status == 0)
        let unknown = try run("edit", ids[1].text, "--preset", "Taken")
        #expect(unknown.status == 1 && unknown.errors.contains("Warm evening"), "\(unknown.errors)")
        #expect(try run("preset", "save", "../escape", "--exposure", "1").status == 2)
        await library.close()
        #expect(services.stop() == [])
    }
}
