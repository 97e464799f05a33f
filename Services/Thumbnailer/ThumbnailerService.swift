import Contracts
import Foundation
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import ServiceLifecycle
import Storage

/// The thumbnailer. It creates the components and connects them.
struct ThumbnailerService: RunnableService {
    static let name = ServiceName.thumbnailer

    /// The address that clients connect to, with the port actually bound.
    let address: EndpointAddress
    let renditions: RenditionProvider
    let metrics: ThumbnailerMetrics
    let addresses: [String]
    let components: [any Service]
    let locks: [any Sendable]
    let logger: Logger

    /// Binds the sockets and starts the workers; requests are answered once the service runs.
    ///
    /// - Throws: the reason why it cannot start, as text for operators
    init(_ configuration: ThumbnailerConfiguration, logger: Logger) async throws {
        try configuration.validate()
        self.logger = logger
        let locks: [any Sendable] = try configuration.endpoints.claim(for: .thumbnailer)
        try Self.makeFolder(configuration.cache)
        self.locks = locks + [try Self.lock(cache: configuration.cache)]
        let blockingIO = BlockingIOExecutor()
        let resources = try ResourceFolder(
            library: configuration.library,
            spool: configuration.spoolBytes.map { (configuration.cache + "/originals", $0) },
            blockingIO: blockingIO
        )
        // Syncs are needed only for the saved position of images that are prepared in advance.
        let disk = try RenditionDiskCache(
            root: configuration.cache,
            budget: configuration.cacheBytes,
            syncFilesystem: configuration.preparedSides.isEmpty
                ? nil : RenditionDiskCache.filesystemSync(of: configuration.cache)
        )
        let metrics = ThumbnailerMetrics()
        self.metrics = metrics
        let thread = try PollThread(name: "thumbnailer")
        let limits = MessagingLimits()
        let catalog = try ServiceClient(
            catalogs: configuration.endpoints.all(.catalog),
            thread: thread,
            limits: limits,
            security: configuration.endpoints.security,
            logger: logger
        )
        // With several catalogs, the one on this machine updates the table late when another one commits.
        let hasTable = resources.spool == nil && configuration.endpoints.all(.catalog).count == 1
        let assets = AssetResolver(
            metrics: metrics,
            tablePath: hasTable ? LastChangeFile.path(in: configuration.library) : nil
        ) { ids, atLeast throws(RPCError) in
            try await Self.assets(ids, atLeast, catalog)
        }
        let renderer = Self.renderer(configuration, resources, logger) { fault in
            await catalog.report(ReportWorkerFault(fault, by: .thumbnailer), logger: logger)
            assets.invalidate(fault.digest)
        }
        // The workers start while the rest is created.
        async let workersStarted: Void = renderer.workers.start()
        async let quickWorkersStarted: Void = renderer.quickWorkers.start()
        renditions = RenditionProvider(
            renderer: renderer,
            memory: RenditionMemoryCache(budget: configuration.memoryBytes),
            disk: disk,
            limit: configuration.queue,
            workers: configuration.workers,
            metrics: metrics,
            logger: logger
        )
        let broker = try ServiceClient(
            address: configuration.endpoints[.broker],
            thread: thread,
            limits: limits,
            security: configuration.endpoints.security(of: .broker),
            logger: logger
        )
        @Sendable func feed(since token: ChangeToken? = nil, topics: [String] = []) -> ChangeFeed {
            ChangeFeed(
                broker: broker,
                feed: configuration.endpoints[.feed],
                thread: thread,
                limits: limits,
                security: configuration.endpoints.security(of: .feed),
                logger: logger,
                since: token,
                topics: topics
            )
        }
        let grants = GrantFollower(feed: feed(topics: [FeedTopic.grants]), logger: logger)
        let access = AccessTable { identity, newest throws(RPCError) in
            let request = GrantStatus(identity: identity, atLeast: newest)
            return try await catalog.ask(request, deadline: .seconds(5)).result
        }
        let refusals = RefusalCounts()
        metrics.all.section("access") { refusals.metrics }
        metrics.all.section("files") { blockingIO.metrics }
        if let spool = resources.spool { metrics.all.section("originals") { spool.metrics } }
        let originals = OriginalFiles(resources: resources, catalog: catalog)
        let preparer = ImagePreparer(assets: assets, renditions: renditions, originals: originals)
        let caches = CachingManagers(preparer, workers: configuration.workers, metrics: metrics)
        let newAssets = NewAssetPreparer(
            preparer,
            catalog: catalog,
            sides: configuration.preparedSides,
            workers: configuration.workers,
            blockingIO: blockingIO,
            metrics: metrics,
            logger: logger
        ) { feed(since: $0) }
        let images = ImageRequestService(
            assets: assets,
            renditions: renditions,
            caches: caches,
            originals: originals
        )
        let streams = VideoStreams(renderer: renderer)
        let exports = VideoExports(
            assets: assets,
            streams: streams,
            blockingIO: blockingIO,
            exporter: Self.exporter(configuration, renderer, logger),
            originals: originals,
            metrics: metrics
        )
        let videos = VideoService(
            assets: assets,
            renditions: renditions,
            streams: streams,
            exports: exports,
            blockingIO: blockingIO,
            originals: originals
        )
        let handler = ThumbnailerHandler(
            images: images,
            data: ImageDataService(
                assets: assets,
                renditions: renditions,
                blockingIO: blockingIO,
                originals: originals
            ),
            sheets: ContactSheetService(
                assets: assets,
                renditions: renditions,
                originals: originals,
                maxAttachmentBytes: limits.maxAttachmentBytes
            ),
            videos: videos,
            livePhotos: LivePhotoService(images: images, videos: videos),
            exports: exports,
            caches: caches,
            hiddenAssets: { identity, assets throws(RPCError) in
                let request = GrantStatus(identity: identity, assets: assets, atLeast: access.newestChange)
                return try await catalog.ask(request, deadline: .seconds(5)).result.hidden
            },
            state: ServiceState(
                Self.name,
                methods: ThumbnailerRequest.methods,
                metrics: metrics.all,
                resources: resources,
                workers: renderer.workers
            ) { () throws(RPCError) in try await catalog.health(deadline: .seconds(2)) }
        )
        let servers = try RequestServers(
            .thumbnailer,
            address: configuration.endpoints[.thumbnailer],
            listener: configuration.listener,
            thread: thread,
            limits: limits,
            security: configuration.endpoints.localSecurity,
            traffic: configuration.traffic,
            logger: logger,
            handler: GuardedHandler(handler, access: ThumbnailerRequest.access, table: access, refusals: refusals)
        )
        access.onChange { identities in
            servers.review(identities)
            for identity in identities where !access.mayKeep(identity) { caches.closeAll(of: identity) }
        }
        address = servers.address
        addresses = servers.addresses
        metrics.all.section("requests") { await servers.metrics() }
        metrics.all.section("assets") { assets.metrics }
        _ = try await (workersStarted, quickWorkersStarted)
        let renditions = renditions
        components =
            [
                ClosingComponent("sockets") { await thread.shutdown() }, WorkerPoolComponent(renderer.workers),
                WorkerPoolComponent(renderer.quickWorkers), LoopComponent("renditions") { await renditions.run() },
                LoopComponent("caching") { await caches.run() }, LoopComponent("exports") { await exports.run() },
                LoopComponent("feed") { await assets.follow(feed(), logger: logger) },
                LoopComponent("grants") {
                    await grants.run(
                        changed: { await access.note($0, at: $1) },
                        confirmed: { access.confirm() },
                        lost: { access.forget() }
                    )
                },
            ] + (configuration.preparedSides.isEmpty ? [] : [LoopComponent("new assets") { await newAssets.run() }])
            + servers.components + [ClosingComponent("access") { access.close() }]
    }

    private static func makeFolder(_ cache: String) throws(CacheError) {
        do {
            try FileManager.default.createDirectory(
                atPath: cache,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o750]
            )
        } catch {
            throw CacheError(
                description: "the cache folder \(cache) cannot be created: \(error.localizedDescription); "
                    + "choose another --cache"
            )
        }
    }

    /// Locks a cache's folder against use by other processes.
    static func lock(cache: String) throws -> LockFile {
        try LockFile(
            path: cache + "/lock",
            program: ServiceName.thumbnailer.rawValue,
            using: "the cache \(cache)",
            advice: "stop it or choose another --cache"
        )
    }

    private static func renderer(
        _ configuration: ThumbnailerConfiguration,
        _ resources: ResourceFolder,
        _ logger: Logger,
        report: @escaping @Sendable (ResourceJobRunner.WorkerFault) async -> Void
    ) -> Renderer {
        func pool(_ count: Int, _ limits: WorkerLimits) -> WorkerPool {
            WorkerPool(
                executable: configuration.executable,
                count: count,
                limits: limits,
                queueLimit: configuration.queue + 16,
                logger: logger
            )
        }
        var quick = configuration.workerLimits
        quick.jobsPerWorker = 2000
        quick.wallSeconds = min(20, quick.wallSeconds)
        return Renderer(
            resources: resources,
            workers: pool(configuration.workers, configuration.workerLimits),
            quickWorkers: pool(1, quick),
            report: report
        )
    }

    private static func exporter(
        _ configuration: ThumbnailerConfiguration,
        _ renderer: Renderer,
        _ logger: Logger
    ) -> VideoExporter {
        var limits = configuration.workerLimits
        limits.wallSeconds = configuration.exportSeconds
        limits.cpuSeconds = 4 * configuration.exportSeconds
        limits.jobsPerWorker = 50
        return VideoExporter(
            resources: renderer.resources,
            workers: WorkerPool(executable: configuration.executable, count: 1, limits: limits, logger: logger),
            folder: configuration.cache,
            maxBytes: configuration.exportBytes,
            report: renderer.report
        )
    }

    /// Fetches assets by id, including those in the trash, because a client that shows the trash needs their images.
    private static func assets(
        _ ids: [ObjectID],
        _ atLeast: ChangeToken?,
        _ catalog: ServiceClient
    ) async throws(RPCError) -> FetchAssets.Result {
        var fetch = FetchDescription(.assets)
        fetch.ids = ids
        var page = try await self.page(FetchAssets(fetch: fetch, count: ids.count, atLeast: atLeast), catalog)
        let found = Set(page.assets.map(\.id))
        let others = ids.filter { !found.contains($0) }
        guard !others.isEmpty else { return page }
        // A fetch selects assets in the trash or the others. Both are read at the same sequence.
        fetch.ids = others
        fetch.inTrash = true
        let trash = try await self.page(FetchAssets(fetch: fetch, token: page.token, count: others.count), catalog)
        page.assets += trash.assets
        page.quarantined += trash.quarantined
        return page
    }

    /// Fetches a page, in several parts if its assets are too large for one message.
    private static func page(
        _ request: FetchAssets,
        _ catalog: ServiceClient
    ) async throws(RPCError) -> FetchAssets.Result {
        do throws(RPCError) {
            return try await catalog.ask(request).result
        } catch {
            guard error.errorCode == .limitExceeded, request.count > 1 else { throw error }
        }
        var (first, second) = (request, request)
        first.count = request.count / 2
        var page = try await self.page(first, catalog)
        second.token = page.token
        second.from = request.from + first.count
        second.count = request.count - first.count
        guard second.from < page.count else { return page }
        let rest = try await self.page(second, catalog)
        page.assets += rest.assets
        page.quarantined += rest.quarantined
        return page
    }
}
