import Contracts
import Hosting
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

extension ThumbnailerWorkerTests {
    @Suite(.timeLimit(.minutes(5)))
    struct CachingTests {
        private func images(_ assets: [Asset], _ side: Int) -> CachedImages {
            var images = CachedImages(assets: assets.map(\.id), targetSize: .size(width: side, height: side))
            images.resizeMode = .exact
            return images
        }

        private func assets(_ fixture: ThumbnailerFixture, _ count: Int) throws -> [Asset] {
            try (0..<count).map { try fixture.catalog.add(TestImages.jpeg(width: 90, height: 60, seed: UInt64($0))) }
        }

        private func open(_ fixture: ThumbnailerFixture, _ allowsHighQuality: Bool = true) async throws -> String {
            try await fixture.client.ask(OpenCache(allowsHighQuality: allowsHighQuality)).result.cache
        }

        /// Waits until no image of a manager is waiting or being prepared.
        private func waitUntilSettled(_ fixture: ThumbnailerFixture, _ cache: String) async throws -> CacheStatus.Result
        {
            while true {
                let status = try await fixture.client.ask(CacheStatus(cache: cache)).result
                if status.waiting + status.preparing == 0 { return status }
                try await Task.sleep(for: .milliseconds(10))
            }
        }

        @Test(.spec("S-53", "S-54", "S-55", "P-11"))
        func `a prepared image is a cache hit for equal options only, until caching is stopped`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let assets = try assets(fixture, 4)
                let (cache, other) = (try await open(fixture), try await open(fixture))
                _ = try await fixture.client.ask(StartCaching(cache: cache, images: images(assets, 40)))
                #expect(try await waitUntilSettled(fixture, cache).prepared == 4)
                #expect(fixture.renders == 4)
                var request = images(assets, 40).request(assets[0].id)
                request.deliveryMode = .opportunistic
                request.cache = cache
                let messages = try await fixture.messages(request)
                #expect(messages.map(\.letter) == ["F"], "one message in every mode")
                #expect(messages[0].result?.isCacheHit == true)
                #expect(messages[0].result?.cacheReason == .prepared)
                request.cache = other
                #expect(try await fixture.image(request).result.cacheReason == .memory)
                request.cache = cache
                for change: (inout ImageRequest) -> Void in [
                    { $0.targetSize = .size(width: 41, height: 40) }, { $0.contentMode = .aspectFill },
                    { $0.quality = 84 }, { $0.format = .png },
                    { $0.normalizedCropRect = UnitRect(x: 0, y: 0, width: 0.5, height: 0.5) },
                ] {
                    var changed = request
                    change(&changed)
                    changed.deliveryMode = .highQualityFormat
                    let result = try await fixture.image(changed).result
                    #expect(!result.isCacheHit)
                    #expect(result.cacheReason == .optionsDiffer)
                }
                let before = try await memoryEntries(fixture)
                _ = try await fixture.client.ask(StopCaching(cache: cache, images: images([assets[0]], 40)))
                #expect(try await memoryEntries(fixture) == before - 1, "stopping releases memory")
                #expect(try await fixture.image(request).result.cacheReason == .disk)
                _ = try await fixture.client.ask(StopCaching(cache: cache, images: images([assets[1]], 39)))
                request.asset = assets[1].id
                #expect(
                    try await fixture.image(request).result.cacheReason == .prepared,
                    "stopping images with other options has no effect"
                )
            }
        }

        @Test func `images are prepared after a failed request to the catalog`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let assets = try assets(fixture, 2)
                fixture.catalog.fail(FetchAssets.method, .connectionLost("it was restarted"))
                let cache = try await open(fixture)
                _ = try await fixture.client.ask(StartCaching(cache: cache, images: images(assets, 40)))
                let status = try await waitUntilSettled(fixture, cache)
                #expect(status.prepared == 2 && status.failed == 0, "\(status)")
            }
        }

        private func memoryEntries(_ fixture: ThumbnailerFixture) async throws -> Int64 {
            try await fixture.client.metrics()["cache"]?["memoryEntries"]?.intValue ?? -1
        }

        @Test(.spec("S-57", "D13")) func `without high quality, images are not decoded ahead of time`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let assets = try (0..<3).map { seed in
                    try fixture.catalog.add(
                        try LargeImageFixtures.large(width: 900, seed: UInt64(seed), preview: seed > 0)
                    )
                }
                let cache = try await open(fixture, false)
                _ = try await fixture.client.ask(StartCaching(cache: cache, images: images(assets, 400)))
                #expect(try await waitUntilSettled(fixture, cache).prepared == 3)
                #expect(fixture.service.metrics.decodes.total == 0)
                let previews = fixture.service.metrics.previews.total
                #expect(previews >= 3)
                var request = images(assets, 400).request(assets[1].id)
                request.deliveryMode = .opportunistic
                #expect(try await fixture.messages(request).map(\.letter).last == "F")
                #expect(fixture.service.metrics.previews.total == previews, "the preview was cached")
                _ = try await fixture.client.ask(ConfigureCache(cache: cache, allowsHighQuality: true))
                _ = try await fixture.client.ask(StartCaching(cache: cache, images: images(assets, 300)))
                _ = try await waitUntilSettled(fixture, cache)
                #expect(fixture.service.metrics.decodes.total >= 3)
            }
        }

        @Test(.spec("S-56")) func `stopping all empties the list and ends running work`() async throws {
            try await ThumbnailerFixture.open {
                $0.workers = 1
            } _: { fixture in
                let asset = try fixture.catalog.add(try LargeImageFixtures.large(width: 1200, seed: 1, preview: false))
                let cache = try await open(fixture)
                for side in 1500..<1540 {
                    _ = try await fixture.client.ask(StartCaching(cache: cache, images: images([asset], side)))
                }
                _ = try await fixture.client.ask(StopAllCaching(cache: cache))
                let status = try await fixture.client.ask(CacheStatus(cache: cache)).result
                #expect(status.waiting + status.preparing + status.prepared + status.failed == 0)
                let image = ImageRequest(asset: asset.id, targetSize: .size(width: 90, height: 90), resizeMode: .exact)
                _ = try await fixture.image(image)
                #expect(fixture.renders < 40, "the rest was not rendered")
                _ = try await fixture.client.ask(CloseCache(cache: cache))
                #expect(await fixture.rpcError(CacheStatus(cache: cache))?.errorCode == .handleExpired)
                var late = image
                late.cache = cache
                #expect(await fixture.rpcError(late)?.errorCode == .handleExpired)
            }
        }

        @Test(.spec("S-58")) func `interactive requests run before prefetch`() async throws {
            try await ThumbnailerFixture.open {
                $0.workers = 1
            } _: { fixture in
                let assets = try (0..<24).map { seed in
                    try fixture.catalog.add(TestImages.jpeg(width: 120, height: 80, seed: UInt64(seed)))
                }
                let cache = try await open(fixture)
                _ = try await fixture.client.ask(StartCaching(cache: cache, images: images(assets, 1600)))
                let urgent = try fixture.catalog.add(TestImages.jpeg(width: 120, height: 80, seed: 99))
                _ = try await fixture.image(
                    ImageRequest(asset: urgent.id, targetSize: .size(width: 60, height: 60), resizeMode: .exact)
                )
                let status = try await fixture.client.ask(CacheStatus(cache: cache)).result
                #expect(status.waiting > 12, "\(status)")
                #expect(try await waitUntilSettled(fixture, cache).prepared == 24, "all images are prepared in the end")
            }
        }

        @Test func `one decode serves all queued sizes`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(try LargeImageFixtures.large(width: 1600, seed: 4, preview: false))
                var plans: [RenditionPlan] = []
                for side in [128, 256, 512, 1024] {
                    plans.append(try RenditionPlan(images([asset], side).request(asset.id), of: asset))
                }
                #expect(await fixture.service.renditions.prepare(plans).allSatisfy { $0 == nil })
                #expect(fixture.service.metrics.decodes.total == 1)
                #expect(fixture.renders == 4)
                for (plan, side) in zip(plans, [128, 256, 512, 1024]) {
                    #expect(fixture.service.renditions.cached(plan)?.rendition.pixelWidth == side)
                }
            }
        }

        @Test func `one failing image of a batch does not affect the others`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 300, height: 3))
                var plans: [RenditionPlan] = []
                for (side, format) in [(100, DeliveredFormat.png), (16_384, .webp)] {
                    var request = images([asset], side).request(asset.id)
                    request.format = format
                    plans.append(try RenditionPlan(request, of: asset))
                }
                let failures = await fixture.service.renditions.prepare(plans)
                #expect(failures[0] == nil)
                #expect(failures[1]?.errorCode == .invalidOptions)
            }
        }
    }
}
