import Basics
import Contracts
import Foundation
import Hosting
import ImageFormats
import Imaging
import JSONValue
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Thumbnailer

extension ThumbnailerWorkerTests {
    @Suite(.timeLimit(.minutes(5)))
    struct ImageRequestTests {
        private func request(_ asset: Asset, _ width: Int, _ height: Int) -> ImageRequest {
            ImageRequest(asset: asset.id, targetSize: .size(width: width, height: height), resizeMode: .exact)
        }

        @Test func `sizes refer to the displayed image for all eight orientations`() async throws {
            try await ThumbnailerFixture.open { fixture in
                for orientation in 1...8 {
                    let asset = try fixture.catalog.add(
                        TestImages.jpeg(width: 300, height: 200, orientation: orientation, seed: UInt64(orientation))
                    )
                    var fit = request(asset, 90, 90)
                    #expect(try await size(fixture, fit) == [90, 60], "orientation \(orientation)")
                    fit.contentMode = .aspectFill
                    #expect(try await size(fixture, fit) == [90, 90])
                    fit.targetSize = .maximum
                    #expect(try await size(fixture, fit) == [300, 200])
                    var crop = request(asset, 100, 100)
                    crop.normalizedCropRect = UnitRect(x: 0.5, y: 0, width: 0.5, height: 1)
                    #expect(try await size(fixture, crop) == [75, 100])
                    let (result, bytes) = try await fixture.image(request(asset, 400, 400))
                    #expect(result.pixelWidth == 400 && result.pixelHeight == 267)
                    #expect(result.isUpscaled)
                    #expect(result.mimeType == "image/jpeg")
                    let info = try ImageProbe.info(of: bytes)
                    #expect(info.pixelWidth == 400 && info.pixelHeight == 267 && info.orientation == 1)
                }
            }
        }

        private func size(_ fixture: ThumbnailerFixture, _ request: ImageRequest) async throws -> [Int] {
            let result = try await fixture.image(request).result
            return [result.pixelWidth, result.pixelHeight]
        }

        @Test func `fast mode never enlarges and reaches the size if the source is large enough`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 400, height: 300))
                for side in [1, 2, 106, 120, 300, 400, 800] {
                    var image = ImageRequest(asset: asset.id, targetSize: .size(width: side, height: side))
                    for mode in ImageContentMode.allCases {
                        image.contentMode = mode
                        let result = try await fixture.image(image).result
                        #expect(result.pixelWidth <= 400 && result.pixelHeight <= 300)
                        #expect(result.pixelWidth >= min(side, 400) || result.pixelHeight >= min(side, 300))
                        #expect(!result.isUpscaled)
                    }
                    image.resizeMode = .none
                    #expect(try await size(fixture, image) == [400, 300])
                }
            }
        }

        @Test func `the second request is served from the cache, also after a restart`() async throws {
            let folder = try TemporaryFolder("dark")
            let photo = TestImages.jpeg(width: 300, height: 200)
            let first = Box<Bytes>([])
            try await ThumbnailerFixture.open(in: folder) { fixture in
                let asset = try fixture.catalog.add(photo)
                let (result, bytes) = try await fixture.image(request(asset, 90, 90))
                #expect(!result.isCacheHit)
                let (again, same) = try await fixture.image(request(asset, 90, 90))
                #expect(again.isCacheHit)
                #expect(same == bytes)
                #expect(fixture.renders == 1)
                #expect(fixture.service.metrics.memoryHits.total == 1)
                first.value = bytes
            }
            try await ThumbnailerFixture.open(in: folder) { fixture in
                let asset = try fixture.catalog.add(photo)
                let (result, bytes) = try await fixture.image(request(asset, 90, 90))
                #expect(result.isCacheHit)
                #expect(bytes == first.value)
                #expect(fixture.renders == 0)
                #expect(fixture.service.metrics.diskHits.total == 1)
            }
        }

        @Test func `64 concurrent requests share one render`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 600, height: 400))
                let image = request(asset, 500, 500)
                let sizes = try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<64 { group.addTask { try await fixture.image(image).bytes.count } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(sizes.count == 64)
                #expect(Set(sizes).count == 1)
                #expect(fixture.renders == 1)
            }
        }

        @Test func `an edited asset is never served with its old pixels`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 300, height: 200, seed: 1))
                let (before, old) = try await fixture.image(request(asset, 90, 90))
                let stored = try fixture.resources.put(bytes: TestImages.jpeg(width: 200, height: 300, seed: 2))
                fixture.catalog.change(asset.id, content: true) { asset in
                    asset.resources.append(
                        AssetResource(
                            type: .fullSizePhoto,
                            digest: stored.digest.text,
                            size: stored.size,
                            contentType: "public.jpeg"
                        )
                    )
                }
                let (after, new) = try await fixture.image(request(asset, 90, 90))
                #expect(after.contentRevision != before.contentRevision)
                #expect(after.sequence > before.sequence)
                #expect(after.pixelWidth == 60 && after.pixelHeight == 90)
                #expect(new != old)
                var original = request(asset, 90, 90)
                original.version = .unadjusted
                #expect(try await fixture.image(original).bytes == old)
                fixture.catalog.remove(asset.id)
                #expect(
                    await fixture.rpcError(original)?.errorCode == .identifierNotFound,
                    "a deleted asset is not served"
                )
            }
        }

        @Test func `atLeast is passed on to the catalog`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 30, height: 20))
                var image = request(asset, 9, 9)
                image.atLeast = ChangeToken(library: fixture.catalog.library, sequence: 1)
                #expect(try await fixture.image(image).result.sequence == 1)
                image.atLeast = ChangeToken(library: fixture.catalog.library, sequence: 2)
                #expect(await fixture.rpcError(image)?.errorCode == .behind)
            }
        }

        @Test(.spec("S-44", "D12"))
        func `every failure has its error name`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let catalog = fixture.catalog
                let good = try catalog.add(TestImages.jpeg(width: 30, height: 20))
                let text = try catalog.add(Array("no picture at all, only words in a file".utf8))
                let cut = try catalog.add(Array(TestImages.jpeg(width: 300, height: 200).prefix(3000)))
                let video = try catalog.add([1, 2, 3]) {
                    $0.mediaType = .video
                    $0.resources[0].type = .video
                }
                let missing = try catalog.add(TestImages.jpeg(width: 31, height: 20)) {
                    $0.resources[0].digest = String(repeating: "0", count: 64)
                }
                #expect(await fixture.rpcError(request(text, 9, 9))?.errorCode == .unsupportedFormat)
                #expect(await fixture.rpcError(request(cut, 9, 9))?.errorCode == .invalidResource)
                #expect(await fixture.rpcError(request(video, 9, 9))?.errorCode == .unsupportedFormat)
                #expect(await fixture.rpcError(request(missing, 9, 9))?.errorCode == .missingResource)
                #expect(
                    await fixture.rpcError(ImageRequest(asset: .none, targetSize: .maximum))?.errorCode
                        == .identifierNotFound
                )
                var image = request(good, 9, 9)
                image.format = .jpeg
                image.resizeMode = .fast
                image.normalizedCropRect = UnitRect(x: 0, y: 0, width: 0.5, height: 0.5)
                #expect(await fixture.rpcError(image)?.errorCode == .invalidOptions)
                let cache = try await fixture.client.ask(OpenCache()).result.cache
                for (x, y, width, height) in [
                    (-0.1, 0.0, 0.5, 0.5), (0, -0.1, 0.5, 0.5), (0, 0, 1.5, 1), (0.6, 0, 0.5, 1), (0, 0.6, 1, 0.5),
                    (0, 0, 0, 1), (0, 0, 1, 0), (0, 0, -0.5, 1), (2, 0, 0.5, 0.5), (1e300, 0, 1, 1),
                ] {
                    image.resizeMode = .exact
                    image.normalizedCropRect = UnitRect(x: x, y: y, width: width, height: height)
                    let refusal = await fixture.rpcError(image)
                    #expect(refusal?.errorCode == .invalidOptions, "\(x) \(y) \(width) \(height)")
                    #expect(refusal?.data["parameter"] == "normalizedCropRect")
                    let options = CachedImages(assets: [image.asset], like: image)
                    let start = await fixture.rpcError(StartCaching(cache: cache, images: options))
                    #expect(start?.errorCode == .invalidOptions, "cache.start: \(x) \(y) \(width) \(height)")
                }
                catalog.fail(FetchAssets.method, ErrorCode.busy.error("not now"))
                #expect(await fixture.rpcError(request(good, 9, 9))?.errorCode == .busy)
                #expect(
                    try await fixture.image(request(good, 9, 9)).result.pixelWidth == 9,
                    "the next request succeeds"
                )
            }
        }

        @Test func `bytes that do not match their digest are not served`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 30, height: 20, seed: 1))
                let digest = try #require(ResourceDigest(asset.resources[0].digest))
                let path = fixture.resources.path(of: digest)
                chmod(path, 0o600)
                try Data(TestImages.jpeg(width: 30, height: 20, seed: 2)).write(to: URL(fileURLWithPath: path))
                #expect(await fixture.rpcError(request(asset, 9, 9))?.errorCode == .resourceChanged)
            }
        }

        @Test func `images have the requested format and quality`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 300, height: 200))
                var counts: [Int] = []
                for (format, quality) in [
                    (DeliveredFormat.jpeg, 90), (.jpeg, 20), (.png, 85), (.webp, 85), (.avif, 60),
                ] {
                    var image = request(asset, 100, 100)
                    (image.format, image.quality) = (format, quality)
                    let (result, bytes) = try await fixture.image(image)
                    #expect(result.mimeType == "image/\(format.rawValue)")
                    #expect(try ImageProbe.info(of: bytes).format.rawValue == format.rawValue)
                    counts.append(bytes.count)
                }
                #expect(counts[1] < counts[0])
            }
        }

        @Test func `a full queue gives busy, and no accepted request is lost`() async throws {
            try await ThumbnailerFixture.open { configuration in
                (configuration.queue, configuration.workers) = (2, 1)
            } _: { fixture in
                var assets: [Asset] = []
                for seed in 0..<12 {
                    assets.append(try fixture.catalog.add(TestImages.jpeg(width: 200, height: 100, seed: UInt64(seed))))
                }
                // All requests receive their asset at the same time.
                let gate = TaskBarrier(assets.count)
                fixture.catalog.callBeforeResponse { _, _ in await gate.pass() }
                let outcomes = await withTaskGroup(of: ErrorCode?.self) { group in
                    for asset in assets {
                        group.addTask { await fixture.rpcError(request(asset, 900, 900))?.errorCode }
                    }
                    return await group.reduce(into: [ErrorCode?]()) { $0.append($1) }
                }
                #expect(outcomes.contains(nil))
                #expect(outcomes.allSatisfy { $0 == nil || $0 == .busy })
                for asset in assets { #expect(await fixture.rpcError(request(asset, 90, 90)) == nil) }
            }
        }

        @Test func `cancelling one waiter does not affect the others`() async throws {
            try await ThumbnailerFixture.open {
                $0.workers = 1
            } _: { fixture in
                let large = try fixture.catalog.add(try LargeImageFixtures.large(width: 1500, seed: 1, preview: false))
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 600, height: 400))
                let image = request(asset, 1500, 1500)
                // The worker renders another image until both requests wait for the same work.
                var slow = request(large, 9000, 9000)
                (slow.deliveryMode, slow.format) = (.highQualityFormat, .png)
                let rendering = Task { [slow] in await fixture.rpcError(slow) }
                try await waitUntil { try await fixture.client.metrics()["workers"]?["busy"] == 1 }
                let cancelled = Task { try? await fixture.image(image).bytes.count }
                let staying = Task { try await fixture.image(image).bytes.count }
                try await waitUntil { try await fixture.client.metrics()["cache"]?["shared"] == 1 }
                cancelled.cancel()
                #expect(await cancelled.value == nil)
                rendering.cancel()
                #expect(await rendering.value?.errorCode == .userCancelled)
                #expect(try await staying.value > 0)
                #expect(fixture.renders == 1)
            }
        }

        private func waitUntil(_ condition: () async throws -> Bool) async throws {
            while try await !condition() { try await Task.sleep(for: .milliseconds(5)) }
        }
    }
}
