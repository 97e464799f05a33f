import ArgumentParser
import Contracts
import Foundation
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Thumbnailer

extension ThumbnailerWorkerTests {
    /// Tests of preparing images, mostly of an original that is only in remote storage.
    @Suite(.timeLimit(.minutes(1)))
    struct ImagePreparerTests {
        /// Runs a test with an asset whose original is only in remote storage, and a function that makes it local.
        ///
        /// - Parameter requiresDisk: true if images that are only in memory count as missing
        private func withoutOriginal(
            allowsHighQuality: Bool = true,
            requiresDisk: Bool = false,
            _ body:
                @Sendable (
                    ThumbnailerFixture, _ prepare: @Sendable () async throws -> Int,
                    _ restore: @escaping @Sendable () -> Void
                ) async throws -> Void
        ) async throws {
            try await ThumbnailerFixture.open { fixture in
                let catalog = fixture.catalog
                let asset = try catalog.add(TestImages.jpeg(width: 90, height: 60, seed: 1))
                let digest = try #require(ResourceDigest(asset.resources[0].digest))
                let (localPath, removedPath) = (fixture.resources.path(of: digest), fixture.folder.file("away"))
                try FileManager.default.moveItem(atPath: localPath, toPath: removedPath)
                let endpoints = try EndpointOptions.parse(["--run", fixture.folder.file("run")]).resolve { _ in nil }
                let client = try ServiceClient(
                    address: endpoints[.catalog],
                    thread: fixture.thread,
                    logger: ThumbnailerFixture.logger
                )
                let preparer = ImagePreparer(
                    assets: AssetResolver(metrics: ThumbnailerMetrics(), tablePath: nil) { ids, _ throws(RPCError) in
                        let assets = ids.compactMap { catalog.asset($0) }
                        let token = ChangeToken(library: catalog.library, sequence: catalog.sequence)
                        return FetchAssets.Result(token: token, count: assets.count, assets: assets)
                    },
                    renditions: fixture.service.renditions,
                    originals: OriginalFiles(
                        resources: ResourceFolder(library: fixture.folder.file("library")),
                        catalog: client
                    )
                )
                var images = CachedImages(assets: [], targetSize: .size(width: 40, height: 40))
                images.isNetworkAccessAllowed = true
                try await body(fixture) { [images] in
                    try await preparer.prepare(
                        asset.id,
                        [images],
                        allowsHighQuality: allowsHighQuality,
                        requiresDisk: requiresDisk
                    ).count
                } _: {
                    try? FileManager.default.moveItem(atPath: removedPath, toPath: localPath)
                }
            }
        }

        @Test(arguments: [1, 2, 3, 4])
        func `an original that is removed again is downloaded again, at most three times`(download: Int) async throws {
            try await withoutOriginal { fixture, prepare, restore in
                fixture.catalog.callBeforeResponse { catalog, method in
                    if catalog.count(DownloadResource.method) == download { restore() }
                }
                let prepared = try await prepare()
                #expect(prepared == (download > 3 ? 0 : 1))
                #expect(fixture.catalog.count(DownloadResource.method) == min(download, 3))
            }
        }

        @Test func `all assets are prepared again for other sizes, and after the cache was deleted`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let endpoints = try EndpointOptions.parse(["--run", fixture.folder.file("run")]).resolve { _ in nil }
                func client(_ name: EndpointName) throws -> ServiceClient {
                    try ServiceClient(
                        address: endpoints[name],
                        thread: fixture.thread,
                        logger: ThumbnailerFixture.logger
                    )
                }
                let (catalog, broker) = (try client(.catalog), try client(.broker))
                let preparer = ImagePreparer(
                    assets: AssetResolver(metrics: ThumbnailerMetrics(), tablePath: nil) { _, _ throws(RPCError) in
                        throw ErrorCode.unavailable.error("the library of this test has no assets")
                    },
                    renditions: fixture.service.renditions,
                    originals: OriginalFiles(
                        resources: ResourceFolder(library: fixture.folder.file("library")),
                        catalog: catalog
                    )
                )
                let (fetches, followed) = (AwaitableValue(0), AwaitableValue<[ChangeToken?]>([]))
                fixture.catalog.callBeforeResponse { _, method in
                    if method == FetchAssets.method { fetches.withLock { $0 += 1 } }
                }
                func start(_ sides: [Int]) -> Task<Void, Never> {
                    let newAssets = NewAssetPreparer(
                        preparer,
                        catalog: catalog,
                        sides: sides,
                        workers: 1,
                        blockingIO: BlockingIOExecutor(),
                        metrics: ThumbnailerMetrics(),
                        logger: ThumbnailerFixture.logger
                    ) { token in
                        followed.withLock { $0.append(token) }
                        return ChangeFeed(
                            broker: broker,
                            feed: endpoints[.feed],
                            thread: fixture.thread,
                            logger: ThumbnailerFixture.logger,
                            since: token
                        )
                    }
                    return Task { await newAssets.run() }
                }
                let token = ChangeToken(library: fixture.catalog.library, sequence: fixture.catalog.sequence)
                for (runs, sides, expected) in [(1, [32], 1), (2, [32], 1), (3, [32, 64], 2)] {
                    let task = start(sides)
                    await followed.wait { $0.count >= runs }
                    task.cancel()
                    await task.value
                    #expect(fetches.current == expected, "\(sides)")
                    #expect(followed.current.last == token)
                }
                let task = start([32, 64])
                await followed.wait { $0.count >= 4 }
                #expect(fetches.current == 2)
                try FileManager.default.removeItem(atPath: fixture.folder.file("cache/prepared"))
                await fetches.wait { $0 == 3 }
                task.cancel()
                await task.value
            }
        }

        @Test func `prepared images wait while the library, disk space or the object store is unavailable`()
            async throws
        {
            try await withoutOriginal(requiresDisk: true) { fixture, prepare, _ in
                let causes = [
                    ErrorCode.libraryOffline.error("…"), ErrorCode.notEnoughSpace.error("…"),
                    ErrorCode.networkError.error("…", ["problem": "unreachable"]),
                    ErrorCode.networkError.error("…", ["problem": "access_denied"]),
                ]
                for cause in causes {
                    fixture.catalog.fail(DownloadResource.method, cause)
                    await #expect { _ = try await prepare() } throws: { error in
                        (error as? RPCError)?.errorCode == cause.errorCode
                    }
                }
                let lost = ErrorCode.networkError.error("…", ["problem": "no_object"])
                fixture.catalog.fail(DownloadResource.method, lost)
                let prepared = try await prepare()
                #expect(prepared == 0, "the object is lost")
            }
        }

        @Test func `a quick image of an original that is only in remote storage is not prepared`() async throws {
            try await withoutOriginal(allowsHighQuality: false) { _, prepare, restore in
                let prepared = try await prepare()
                #expect(prepared == 0)
                restore()
                let preparedAgain = try await prepare()
                #expect(preparedAgain == 1)
            }
        }

        @Test func `images wait for a catalog that cannot be reached`() async throws {
            try await withoutOriginal { fixture, prepare, _ in
                fixture.catalog.fail(DownloadResource.method, .connectionLost("it was restarted"))
                await #expect { _ = try await prepare() } throws: { error in
                    (error as? RPCError)?.errorCode == .connectionLost
                }
            }
        }
    }
}
