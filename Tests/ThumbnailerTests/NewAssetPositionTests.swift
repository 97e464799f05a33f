import Basics
import Contracts
import Foundation
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Thumbnailer

/// Tests of the position of images that are prepared in advance, and of the images in the disk cache.
@Suite(.timeLimit(.minutes(1)))
struct NewAssetPositionTests {
    @Test func `the position does not pass an asset whose image cannot be written to the disk`() async throws {
        try await PreparedAsset.open { prepared in
            // A file in place of a folder, because root may write to every folder.
            let folder = ((prepared.image as NSString).deletingLastPathComponent as NSString).deletingLastPathComponent
            try Data([1]).write(to: URL(fileURLWithPath: folder))
            let task = prepared.start()
            await prepared.events.wait { $0.count >= 2 }
            #expect(Array(prepared.events.current.prefix(2)) == [.lookup, .lookup], "the asset is tried again")
            #expect(prepared.savedToken == nil)
            try FileManager.default.removeItem(atPath: folder)
            await prepared.events.wait { $0.contains(.follow) }
            #expect(prepared.hasImage)
            task.cancel()
            await task.value
            #expect(prepared.savedToken == PreparedAsset.token)
        }
    }

    @Test func `the position is saved after a sync, and images that a failed sync may have lost are written again`()
        async throws
    {
        try await PreparedAsset.open(failedSyncs: 1) { prepared in
            let task = prepared.start()
            await prepared.events.wait { $0.count >= 4 }
            task.cancel()
            await task.value
            #expect(prepared.events.current == [.lookup, .follow, .lookup, .follow])
            #expect(prepared.syncs.current.count >= 2)
            #expect(prepared.syncs.current.allSatisfy { $0 == nil }, "the position was saved before the sync")
            #expect(prepared.hasImage)
            #expect(prepared.savedToken == PreparedAsset.token)
        }
    }
}

/// A preparer in a library with one asset. Its image is in memory whenever the asset is looked up, so that no worker is
/// needed.
private struct PreparedAsset: Sendable {
    enum Event: Sendable {
        case lookup
        /// All assets were prepared, and the feed is followed.
        case follow
    }

    let events = AwaitableValue<[Event]>([])
    /// The position that was saved at each sync with the image.
    let syncs: AwaitableValue<[ChangeToken?]>
    /// The path of the image in the disk cache.
    let image: String
    private let root: String
    private let preparer: ImagePreparer
    private let library: PhotoLibrary

    static let token = ChangeToken(library: String(repeating: "1", count: 32), sequence: 5)
    private static let side = 32

    /// - Parameter failedSyncs: the number of syncs with the image that fail
    private init(failedSyncs: Int, root: String, _ asset: Asset, _ library: PhotoLibrary) throws {
        var images = CachedImages(assets: [], targetSize: .size(width: Self.side, height: Self.side))
        images.isNetworkAccessAllowed = true
        let plan = try RenditionPlan(images.request(asset.id), of: asset)
        let image = RenditionDiskCache.path(
            root,
            RenditionKey(plan, rendererVersion: RenditionProvider.rendererVersion)
        )
        let syncs = AwaitableValue<[ChangeToken?]>([])
        let disk = try RenditionDiskCache(root: root, budget: 1 << 20) { () throws(StorageError) in
            guard FileManager.default.fileExists(atPath: image) else { return }
            let count = syncs.withLock { tokens in
                tokens.append(Self.savedToken(in: root))
                return tokens.count
            }
            if count <= failedSyncs { throw StorageError.io("the disk failed") }
        }
        let memory = RenditionMemoryCache<RenditionPlan>(budget: 1 << 20)
        let resources = ResourceFolder(library: root + "/none")
        let logger = ThumbnailerFixture.logger
        let renderer = Renderer(
            resources: resources,
            workers: WorkerPool(count: 1, logger: logger),
            quickWorkers: WorkerPool(count: 1, logger: logger),
            report: { _ in }
        )
        let metrics = ThumbnailerMetrics()
        let events = events
        preparer = ImagePreparer(
            assets: AssetResolver(metrics: metrics, tablePath: nil) { _, _ in
                events.withLock { $0.append(.lookup) }
                let rendition = EncodedRendition(
                    bytes: [1, 2, 3],
                    mimeType: "image/jpeg",
                    pixelWidth: 32,
                    pixelHeight: 21,
                    isUpscaled: false
                )
                memory.insert(rendition, plan)
                return FetchAssets.Result(token: Self.token, count: 1, assets: [asset])
            },
            renditions: RenditionProvider(
                renderer: renderer,
                memory: memory,
                disk: disk,
                limit: 16,
                workers: 1,
                metrics: metrics,
                logger: logger
            ),
            originals: OriginalFiles(resources: resources, catalog: library.catalog)
        )
        self.syncs = syncs
        self.image = image
        self.root = root
        self.library = library
    }

    /// Creates the cache's folder and a catalog, and runs the body.
    static func open(
        failedSyncs: Int = 0,
        _ body: @Sendable (PreparedAsset) async throws -> Void
    ) async throws {
        var random = SeededRandom(seed: 1)
        var asset = Asset(
            id: ObjectID(.asset, milliseconds: 1, using: &random),
            revision: Revision(1),
            contentRevision: Revision(1)
        )
        asset.mediaType = .image
        asset.resources = [
            AssetResource(
                type: .photo,
                digest: String(repeating: "ab", count: 32),
                size: 1,
                contentType: "public.jpeg",
                pixelWidth: 90,
                pixelHeight: 60
            )
        ]
        let catalog = OneAssetCatalog(page: FetchAssets.Result(token: token, count: 1, assets: [asset]))
        try await ClientFixture.with { fixture in
            let root = fixture.folder.file("cache")
            let prepared = try PreparedAsset(failedSyncs: failedSyncs, root: root, asset, fixture.library)
            try await fixture.serving(fixture.endpoints.catalog, catalog) { try await body(prepared) }
        }
    }

    /// Prepares the image and follows the feed until the task is cancelled.
    func start() -> Task<Void, Never> {
        let (events, library) = (events, library)
        let newAssets = NewAssetPreparer(
            preparer,
            catalog: library.catalog,
            sides: [Self.side],
            workers: 1,
            blockingIO: BlockingIOExecutor(),
            metrics: ThumbnailerMetrics(),
            logger: ThumbnailerFixture.logger
        ) { token in
            events.withLock { $0.append(.follow) }
            return library.changes(since: token)
        }
        return Task { await newAssets.run() }
    }

    var hasImage: Bool { FileManager.default.fileExists(atPath: image) }

    /// The position in the cache's folder; nil if there is none.
    var savedToken: ChangeToken? { Self.savedToken(in: root) }

    private static func savedToken(in root: String) -> ChangeToken? {
        guard let saved = FileManager.default.contents(atPath: root + "/prepared") else { return nil }
        return NewAssetPreparer.token(in: String(decoding: saved, as: UTF8.self), of: NewAssetPreparer.imageSet([side]))
    }
}

/// A catalog that answers each fetch with the same page.
private struct OneAssetCatalog: RequestHandler {
    let page: FetchAssets.Result

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        guard request.method == FetchAssets.method else {
            throw ErrorCode.methodNotFound.error("there are only assets")
        }
        return Reply(page.json)
    }
}
