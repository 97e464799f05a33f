import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A photo with damaged image data: it is imported as it is, and every report marks it as damaged.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct DamagedImageTests {
    /// Follows the records and returns the first one that marks an asset as damaged.
    private func waitForMark(_ library: PhotoLibrary) async throws -> ChangeRecord {
        let beginning = ChangeToken(library: try await library.currentToken().token.library, sequence: 0)
        for try await event in library.changes(since: beginning) {
            if case .change(let record) = event, record.origin.identity == "examiner" { return record }
        }
        throw FixtureError(description: "the feed ended")
    }

    @Test func `a damaged photo is imported and marked after the import, even if the catalog is killed meanwhile`()
        async throws
    {
        let services = try SafelightFixture("damaged")
        try services.start([.catalog, .changeBroker])
        let whole = TestImages.jpeg(width: 640, height: 480, date: "2024:06:01 12:30:00")
        let cut = Array(whole.prefix(whole.count * 2 / 3)) + [0xFF, 0xD9]
        try services.folder.write(whole, to: "p/whole.jpg")
        try services.folder.write(cut, to: "p/cut.jpg")
        try services.folder.write(whole.prefix(whole.count / 2), to: "p/short.jpg")
        for seed in 1...20 { try services.folder.write(TestImages.jpeg(seed: UInt64(seed)), to: "p/\(seed).jpg") }
        let first = try services.safelight(["import", services.folder.file("p")])
        #expect(first.status == 3 && first.errors.contains("broken: \(services.folder.file("p/short.jpg"))"))
        #expect(first.output.contains("22 imported"), "\(first.output)")
        try services.restart(.catalog)

        let library = try services.library()
        let record = try await waitForMark(library)
        // The import has ended, so its record is the newest one.
        #expect(try await library.currentToken().token.sequence == record.sequence)
        let marked = try #require(record.assets.first?.after)
        #expect(record.assets.count == 1 && marked.originalFilename == "cut.jpg")
        #expect(record.assets.first?.isContentChanged == false)
        let damage = try #require(marked.originalResource?.damage)
        #expect(damage.contains("of 480"), "\(damage)")
        func listDamages() async throws -> [String] {
            try await library.assets(FetchDescription(.assets), count: 100).assets.compactMap(
                \.originalResource?.damage
            )
        }
        #expect(try await listDamages() == [damage])
        #expect(try services.safelight(["show", marked.id.text]).output.contains(damage))
        // The stored original is byte for byte the imported file.
        #expect(try await library.resource(asset: marked.id).readAll(limit: 1 << 20) == cut)

        // The asset is marked once: neither a restart nor another import repeats it.
        try services.restart(.catalog)
        #expect(try await listDamages() == [damage])
        try services.folder.write(TestImages.jpeg(seed: 99), to: "q/99.jpg")
        #expect(try services.safelight(["import", services.folder.file("q")]).status == 0)
        try await waitUntil("the import is examined") {
            try await library.catalog.metrics()["examiner"]?["sequence"] == .int(record.sequence + 1)
        }
        #expect(try await library.currentToken().token.sequence == record.sequence + 1)
        await library.close()
        #expect(services.stop() == [])
    }
}
