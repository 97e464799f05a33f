import Contracts
import Imaging
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

extension DarkroomTests {
    @Suite(.timeLimit(.minutes(5)))
    struct SheetAndHealthTests {
        @Test func `a sheet shows the available images and reports the failed ones`() async throws {
            try await Darkroom.open { room in
                var ids: [ObjectID] = []
                for seed in 0..<5 {
                    ids.append(try room.catalog.add(TestPictures.jpeg(width: 300, height: 200, seed: UInt64(seed))).id)
                }
                let broken = try room.catalog.add([1, 2, 3, 4])
                ids += [broken.id, .none]
                let answer = try await room.client.ask(ImageSheet(assets: ids, columns: 3, cell: 100))
                let failed = answer.result.failed
                #expect(failed.members.map(\.name) == [broken.id.text, ObjectID.none.text])
                #expect(failed[broken.id.text]?["name"] == "unsupported_format")
                #expect(failed[ObjectID.none.text]?["name"] == "identifier_not_found")
                let info = try Picture.info(of: answer.attachments[0])
                #expect(info.pixelWidth == answer.result.pixelWidth)
                #expect(info.pixelWidth >= 300)
                #expect(room.renders == 5)
                _ = try await room.client.ask(ImageSheet(assets: ids, columns: 7, cell: 100))
                #expect(room.renders == 5, "cells use the same cache")
            }
        }

        @Test func `an invalid sheet is refused before any work is done`() async throws {
            try await Darkroom.open { room in
                let id = try room.catalog.add(TestPictures.jpeg(width: 30, height: 20)).id
                #expect(await room.refusal(ImageSheet(assets: []))?.refusal == .invalidOptions)
                #expect(await room.refusal(ImageSheet(assets: [id], labels: ["a", "b"]))?.refusal == .invalidOptions)
                let many = [ObjectID](repeating: id, count: 400)
                #expect(await room.refusal(ImageSheet(assets: many, cell: 1024))?.refusal == .limitExceeded)
                #expect(room.catalog.count(FetchAssets.method) == 0)
            }
        }

        @Test func `health reports problems, and figures count the work`() async throws {
            try await Darkroom.open { room in
                let asset = try room.catalog.add(TestPictures.jpeg(width: 30, height: 20))
                _ = try await room.image(ImageRequest(asset: asset.id, targetSize: .maximum))
                var health = try await room.client.health()
                #expect(health.isHealthy)
                #expect(health.sequence == 1)
                room.catalog.setHealthy(false)
                health = try await room.client.health()
                #expect(!health.isHealthy)
                #expect(health.problems.count == 1)
                let figures = try await room.client.figures()
                #expect(figures["renders"] == 1)
                #expect(figures["misses"] == 1)
                #expect(figures["renderMicroseconds"]?["count"] == 1)
                #expect(figures["cache"]?["diskEntries"] == 1)
                #expect(figures["workers"]?["workers"] == 2)
                #expect(figures["requests"] != nil)
                let document = try await room.client.ask(Discover()).result.members
                #expect(document["info"]?["title"] == "thumbnailer")
                #expect(document["methods"]?.arrayValue?.count == ThumbnailerRequest.methods.count)
            }
        }

        @Test func `a second thumbnailer cannot use the same cache or address`() async throws {
            try await Darkroom.open { room in
                await #expect(throws: (any Error).self) {
                    try await Darkroom.open(in: room.folder) { _ in }
                }
            }
        }
    }
}
