import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The path of one photo through the real executables.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ImagePathTests {
    @Test func `a photo is imported, displayed, edited and reverted, and subscribers see each change`() async throws {
        let services = try SafelightFixture("path")
        try services.folder.write(
            TestImages.jpeg(
                width: 320,
                height: 200,
                orientation: 6,
                date: "2024:06:01 12:30:00",
                offset: "+02:00",
                subsec: "25",
                latitude: 52.5,
                longitude: 13.4
            ),
            to: "photos/a.jpg"
        )
        try services.folder.write(Array("no image".utf8), to: "photos/broken.jpg")
        try services.folder.write(TestImages.jpeg(width: 320, height: 200, seed: 2).dropLast(900), to: "photos/cut.jpg")
        try services.start()
        let imported = try services.safelight(["import", services.folder.file("photos")])
        #expect(imported.status == 3, "a broken file does not end the import: \(imported.errors)")
        #expect(imported.errors.contains("broken.jpg") || imported.output.contains("broken.jpg"))
        #expect(imported.errors.contains("cut.jpg") || imported.output.contains("cut.jpg"))

        let library = try services.library()
        let page = try await library.assets(FetchDescription(.assets))
        let asset = try #require(page.assets.first)
        #expect(page.count == 1)
        #expect((asset.pixelWidth, asset.pixelHeight) == (320, 200))
        #expect(asset.creationDate == 1_717_237_800_250_000)
        #expect(asset.creationOffset == 7200)
        #expect(asset.location == Location(latitude: 52.5, longitude: 13.4))

        let thumb = try await library.thumbnailer.ask(
            ImageRequest(asset: asset.id, targetSize: .size(width: 100, height: 100), resizeMode: .exact)
        )
        #expect((thumb.result.pixelWidth, thumb.result.pixelHeight) == (100, 63))
        #expect(thumb.attachments.first?.starts(with: [0xFF, 0xD8]) == true)

        var changes = library.changes(since: page.token).makeAsyncIterator()
        let edit = try await library.editor.ask(
            ApplyEdit(
                asset: asset.id,
                adjustments: AdjustmentList(operations: [.rotate(.quarter), .exposure(0.5)])
            )
        )
        #expect(edit.result.isChanged)
        let change = try await nextChange(&changes)
        #expect(change.sequence == edit.result.sequence)
        #expect(change.assets.first?.isContentChanged == true)
        #expect(change.assets.first?.after?.pixelWidth == 200)

        let edited = try await library.thumbnailer.ask(
            ImageRequest(
                asset: asset.id,
                targetSize: .size(width: 100, height: 100),
                resizeMode: .exact,
                atLeast: edit.result.token
            )
        )
        #expect((edited.result.pixelWidth, edited.result.pixelHeight) == (63, 100))
        let original = try await library.thumbnailer.ask(
            ImageRequest(
                asset: asset.id,
                targetSize: .size(width: 100, height: 100),
                resizeMode: .exact,
                version: .unadjusted
            )
        )
        #expect(original.attachments == thumb.attachments)

        let reverted = try services.safelight(["revert", asset.id.text])
        #expect(reverted.status == 0, "\(reverted.errors)")
        #expect(try await nextChange(&changes).assets.first?.after?.hasAdjustments == false)
        let after = try await library.asset(asset.id)
        #expect(after.resources.map(\.digest) == asset.resources.map(\.digest))
        await library.close()
        #expect(services.stop() == [])
    }

    private func nextChange(_ changes: inout ChangeFeed.Iterator) async throws -> ChangeRecord {
        while let event = try await changes.next() {
            if case .change(let record) = event { return record }
        }
        throw FixtureError(description: "the feed ended")
    }

    @Test func `the same transaction sent three times is one change with three equal outcomes, even across a kill`()
        async throws
    {
        let services = try SafelightFixture("same")
        let path = try services.folder.write(TestImages.jpeg(seed: 3), to: "a.jpg")
        try services.start([.catalog])
        let library = try services.library()
        let created = try await library.perform(
            [.createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))])
        let asset = try #require(created.id("a"))
        let favourite: [ChangeRequest] = [.updateAsset(.init(id: .id(asset), set: AssetPatch(isFavorite: true)))]

        async let firstAnswer = library.perform(favourite, transaction: "once")
        async let secondAnswer = library.perform(favourite, transaction: "once")
        async let thirdAnswer = library.perform(favourite, transaction: "once")
        let outcomes = try await [firstAnswer, secondAnswer, thirdAnswer]
        #expect(Set(outcomes.map(\.sequence)).count == 1)

        try services.restart(.catalog)
        let later = try await library.perform(favourite, transaction: "once")
        #expect(later.json == outcomes[0].json)
        #expect(try await library.currentToken().token.sequence == outcomes[0].sequence)

        let other: [ChangeRequest] = [.updateAsset(.init(id: .id(asset), set: AssetPatch(isFavorite: false)))]
        let error = await #expect(throws: RPCError.self) { try await library.perform(other, transaction: "once") }
        #expect(error?.errorCode == .idReused)
        await library.close()
        #expect(services.stop() == [])
    }
}
