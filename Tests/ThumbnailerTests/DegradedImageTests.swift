import Contracts
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

extension ThumbnailerWorkerTests {
    /// Tests of the sizes of degraded images.
    @Suite(.timeLimit(.minutes(5)))
    struct DegradedImageTests {
        private static let targets: [TargetSize] = [
            .size(width: 380, height: 300), .size(width: 641, height: 900), .size(width: 1900, height: 400),
            .size(width: 3000, height: 3000), .maximum,
        ]

        @Test(.spec("S-45", "P-09"), arguments: [false, true])
        func `a degraded image has at least a quarter of the requested size, whatever is cached`(hasPreview: Bool)
            async throws
        {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(
                    try LargeImageFixtures.large(width: 1200, seed: 4, preview: hasPreview)
                )
                for side in [2, 40] {
                    let small = ImageRequest(
                        asset: asset.id,
                        targetSize: .size(width: side, height: side),
                        resizeMode: .exact,
                        deliveryMode: .highQualityFormat
                    )
                    #expect(try await fixture.image(small).result.pixelWidth == side)
                }
                for target in Self.targets {
                    for contentMode in ImageContentMode.allCases {
                        for deliveryMode in [ImageDeliveryMode.fastFormat, .opportunistic] {
                            var request = ImageRequest(
                                asset: asset.id,
                                targetSize: target,
                                contentMode: contentMode,
                                resizeMode: .exact,
                                deliveryMode: deliveryMode
                            )
                            let plan = try RenditionPlan(request, of: asset)
                            let goal = try #require(DegradedImageGoal(plan, of: asset.resources[0]))
                            for message in try await fixture.messages(request) {
                                let result = try #require(message.result)
                                let size = (result.pixelWidth, result.pixelHeight)
                                #expect(
                                    4 * size.0 >= goal.width && 4 * size.1 >= goal.height,
                                    "\(target) \(contentMode) \(deliveryMode): \(size) for \(goal)"
                                )
                            }
                            request.deliveryMode = .fastFormat
                            #expect(try await fixture.messages(request).count == 1)
                        }
                    }
                }
            }
        }

        /// Adds a photo without a preview, and requests an image of 300 pixels.
        ///
        /// - Returns: the asset, and the request for the image
        private static func smallImage(
            seed: UInt64,
            _ fixture: ThumbnailerFixture
        ) async throws -> (asset: Asset, request: ImageRequest) {
            let asset = try fixture.catalog.add(try LargeImageFixtures.large(width: 1200, seed: seed, preview: false))
            let request = ImageRequest(
                asset: asset.id,
                targetSize: .size(width: 300, height: 300),
                resizeMode: .exact,
                deliveryMode: .highQualityFormat
            )
            _ = try await fixture.image(request)
            return (asset, request)
        }

        @Test(.spec("S-45")) func `a smaller cached image that is near the target is used`() async throws {
            try await ThumbnailerFixture.open { fixture in
                var request = try await Self.smallImage(seed: 4, fixture).request
                request.targetSize = .size(width: 1200, height: 1200)
                request.deliveryMode = .fastFormat
                let result = try await fixture.image(request).result
                #expect(result.isDegraded && result.cacheReason == .smaller && result.pixelWidth == 300)
            }
        }

        @Test func `a client with a limited grant cannot detect what is cached for others`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let (asset, first) = try await Self.smallImage(seed: 5, fixture)
                var request = first
                let (summary, renditions) = (AssetSummary(asset), fixture.service.renditions)
                let small = try RenditionPlan(request, of: summary, for: "key:a")
                let cached = try #require(renditions.cached(small), "the cache is shared")
                #expect(!cached.isCacheHit && cached.reason == .rendered)
                request.targetSize = .size(width: 1200, height: 1200)
                let source = try RenditionPlan.resource(of: summary, version: .current)
                let others = try RenditionPlan(request, of: summary)
                #expect(await renditions.degraded(others, of: source)?.reason == .smaller)
                let large = try RenditionPlan(request, of: summary, for: "key:a")
                #expect(large == others)
                #expect(await renditions.degraded(large, of: source)?.reason != .smaller)
            }
        }

        @Test func `the goal is the size without enlargement`() throws {
            var source = AssetResource(type: .photo, digest: "", size: 1, contentType: "public.jpeg")
            #expect(try goal(source) == nil)
            (source.pixelWidth, source.pixelHeight) = (1200, 800)
            func size(_ change: (inout ImageRequest) -> Void) throws -> [Int] {
                try goal(source, change).map { [$0.width, $0.height] } ?? []
            }
            #expect(try size { _ in } == [300, 200])
            #expect(try size { $0.contentMode = .aspectFill } == [450, 300])
            #expect(try size { ($0.contentMode, $0.resizeMode) = (.aspectFill, .exact) } == [300, 300])
            #expect(try size { $0.targetSize = .maximum } == [1200, 800])
            #expect(try size { $0.targetSize = .size(width: 9000, height: 9000) } == [1200, 800])
            #expect(
                try size {
                    ($0.contentMode, $0.resizeMode) = (.aspectFill, .exact)
                    $0.targetSize = .size(width: 9000, height: 9000)
                } == [800, 800]
            )
            #expect(
                try size {
                    $0.resizeMode = .exact
                    $0.normalizedCropRect = UnitRect(x: 0, y: 0, width: 0.25, height: 0.25)
                } == [300, 200]
            )
        }

        private func goal(
            _ source: AssetResource,
            _ change: (inout ImageRequest) -> Void = { _ in }
        ) throws -> DegradedImageGoal? {
            var asset = Asset(id: .none, revision: Revision(1), contentRevision: Revision(1))
            asset.resources = [source]
            var request = ImageRequest(asset: .none, targetSize: .size(width: 300, height: 300))
            change(&request)
            return DegradedImageGoal(try RenditionPlan(request, of: asset), of: source)
        }
    }
}
