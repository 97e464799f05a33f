import Contracts
import Imaging
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

extension ThumbnailerWorkerTests {
    @Suite(.timeLimit(.minutes(5)))
    struct SheetAndHealthTests {
        @Test func `a sheet shows the available images and reports the failed ones`() async throws {
            try await ThumbnailerFixture.open { fixture in
                var ids: [ObjectID] = []
                for seed in 0..<5 {
                    ids.append(try fixture.catalog.add(TestImages.jpeg(width: 300, height: 200, seed: UInt64(seed))).id)
                }
                let broken = try fixture.catalog.add([1, 2, 3, 4])
                ids += [broken.id, .none]
                let answer = try await fixture.client.ask(ImageSheet(assets: ids, columns: 3, cell: 100))
                let failed = answer.result.failed
                #expect(failed.members.map(\.name) == [broken.id.text, ObjectID.none.text])
                #expect(failed[broken.id.text]?["name"] == "unsupported_format")
                #expect(failed[ObjectID.none.text]?["name"] == "identifier_not_found")
                let info = try ImageProbe.info(of: answer.attachments[0])
                #expect(info.pixelWidth == answer.result.pixelWidth)
                #expect(info.pixelWidth >= 300)
                #expect(fixture.renders == 5)
                _ = try await fixture.client.ask(ImageSheet(assets: ids, columns: 7, cell: 100))
                #expect(fixture.renders == 5, "cells use the same cache")
            }
        }

        @Test func `a sheet can have assets that are together too large for one message`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let ids = try (0..<3).map { seed in
                    try fixture.catalog.add(TestImages.jpeg(width: 300, height: 200, seed: UInt64(seed))).id
                }
                let refusal = ErrorCode.limitExceeded.error("the page is too large")
                fixture.catalog.fail(FetchAssets.method, refusal)
                let answer = try await fixture.client.ask(ImageSheet(assets: ids, columns: 3, cell: 100))
                #expect(answer.result.failed.isEmpty && fixture.renders == 3)
                #expect(fixture.catalog.count(FetchAssets.method) >= 3)
            }
        }

        @Test func `a sheet for which the queue has no space is refused as busy`() async throws {
            try await ThumbnailerFixture.open {
                $0.queue = 1
            } _: { fixture in
                let ids = try (0..<6).map { seed in
                    let image = try LargeImageFixtures.large(width: 1500, seed: UInt64(seed), preview: false)
                    return try fixture.catalog.add(image).id
                }
                let sheet = ImageSheet(assets: ids, columns: 3, cell: 100)
                // The first cell waits for this image; it is cancelled because the queue has no space for the others.
                async let first = fixture.rpcError(ContactSheetPlan.image(ids[0], in: sheet))
                while fixture.renders == 0 {
                    if try await fixture.client.metrics()["cache"]?["underWay"] == 1 { break }
                }
                #expect(await fixture.rpcError(sheet)?.errorCode == .busy)
                _ = await first
            }
        }

        @Test func `an invalid sheet is refused before any work is done`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let id = try fixture.catalog.add(TestImages.jpeg(width: 30, height: 20)).id
                #expect(await fixture.rpcError(ImageSheet(assets: []))?.errorCode == .invalidOptions)
                #expect(
                    await fixture.rpcError(ImageSheet(assets: [id], labels: ["a", "b"]))?.errorCode == .invalidOptions
                )
                let many = [ObjectID](repeating: id, count: 400)
                #expect(await fixture.rpcError(ImageSheet(assets: many, cell: 1024))?.errorCode == .limitExceeded)
                #expect(fixture.catalog.count(FetchAssets.method) == 0)
            }
        }

        @Test func `health reports problems, and figures count the work`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 30, height: 20))
                _ = try await fixture.image(ImageRequest(asset: asset.id, targetSize: .maximum))
                var health = try await fixture.client.health()
                #expect(health.isHealthy)
                #expect(health.sequence == 1)
                fixture.catalog.setHealthy(false)
                health = try await fixture.client.health()
                #expect(!health.isHealthy)
                #expect(health.problems.count == 1)
                let metrics = try await fixture.client.metrics()
                #expect(metrics["renders"] == 1)
                #expect(metrics["misses"] == 1)
                #expect(metrics["renderMicroseconds"]?["count"] == 1)
                #expect(metrics["cache"]?["diskEntries"] == 1)
                #expect(metrics["workers"]?["workers"] == 2)
                #expect(metrics["requests"] != nil)
                let document = try await fixture.client.ask(Discover()).result.members
                #expect(document["info"]?["title"] == "thumbnailer")
                #expect(document["methods"]?.arrayValue?.count == ThumbnailerRequest.methods.count + 2)
            }
        }

        @Test func `a second thumbnailer cannot use the same cache or address`() async throws {
            try await ThumbnailerFixture.open { fixture in
                await #expect(throws: (any Error).self) {
                    try await ThumbnailerFixture.open(in: fixture.folder) { _ in }
                }
            }
        }
    }
}
