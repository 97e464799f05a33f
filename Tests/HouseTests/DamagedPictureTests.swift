import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A picture that lost something inside: taken in as it is, and said to be damaged wherever one looks.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct DamagedPictureTests {
    @Test func `it is imported, named, and marked through restarts; a damaged render is refused`() async throws {
        let house = try RunningHouse("damaged")
        try house.start()
        let whole = TestPictures.jpeg(width: 640, height: 480, date: "2024:06:01 12:30:00")
        let cut = Array(whole.prefix(whole.count * 2 / 3)) + [0xFF, 0xD9]
        try house.folder.write(whole, to: "p/whole.jpg")
        try house.folder.write(cut, to: "p/cut.jpg")
        try house.folder.write(whole.prefix(whole.count / 2), to: "p/short.jpg")
        let first = try house.safelight(["import", house.folder.file("p")])
        #expect(first.status == 3, "one ends too early")
        #expect(first.errors.contains("damaged: \(house.folder.file("p/cut.jpg")): imported"), "\(first.errors)")
        #expect(first.errors.contains("broken: \(house.folder.file("p/short.jpg"))"), "\(first.errors)")
        #expect(first.output.contains("2 imported (1 of them damaged)"), "\(first.output)")

        let library = try house.library()
        func damages() async throws -> [String: String?] {
            let assets = try await library.assets(FetchDescription(.assets)).assets
            return Dictionary(
                uniqueKeysWithValues: assets.map { ($0.originalFilename ?? "", $0.originalResource?.damage) }
            )
        }
        let marked = try await damages()
        #expect(marked["whole.jpg"] == .some(nil))
        let damage = try #require(marked["cut.jpg"] ?? nil)
        #expect(damage.contains("of 480"), "\(damage)")
        try house.restart(.catalog)
        #expect(try await damages() == marked)

        let assets = try await library.assets(FetchDescription(.assets)).assets
        let id = try #require(assets.first { $0.originalFilename == "cut.jpg" }?.id)
        let other = try #require(assets.first { $0.originalFilename == "whole.jpg" }?.id)
        #expect(try house.safelight(["show", id.text]).output.contains(damage))
        #expect(try !house.safelight(["show", other.text]).output.contains("damage"))
        // The bytes are the user's, every one.
        #expect(try await library.resource(asset: id).readAll(limit: 1 << 20) == cut)
        // The record of its making tells it to whoever follows.
        let records = try await library.changeBroker.ask(FeedSince(token: nil, limit: 10)).result.records
        let told = try records.flatMap { try ChangeRecord(json: $0).assets }.compactMap {
            $0.after?.originalResource?.damage
        }
        #expect(told == [damage])

        let edit = ChangeRequest.EditAsset(
            id: other,
            render: NewResource(source: .attachment(0)),
            adjustmentData: AdjustmentData(formatIdentifier: "test", formatVersion: "1", attachment: 1)
        )
        let refused = await #expect(throws: RPCError.self) {
            try await library.perform([.editAsset(edit)], attachments: [cut, Array("{}".utf8)])
        }
        #expect(refused?.refusal == .invalidResource, "\(String(describing: refused))")
        await library.close()
        #expect(house.stop() == [])
    }
}
