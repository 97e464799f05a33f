import Contracts
import Foundation
import Hosting
import Logging
import Messaging
import PhotoClient
import PhotoModel
import ServiceLifecycle
import Storage

/// The one place where the parts of the thumbnailer meet.
struct ThumbnailerService: Sendable {
    /// Where it answers, with the port that was found.
    let address: EndpointAddress
    let desk: PictureDesk
    let figures: PictureFigures
    private let addresses: [String]
    private let parts: [any Service]
    private let locks: [any Sendable]
    private let logger: Logger

    /// Binds and starts the workers; requests are answered once it runs.
    ///
    /// - Throws: what keeps it from starting, in words for people.
    init(_ configuration: ThumbnailerConfiguration, logger: Logger) async throws {
        try configuration.validate()
        self.logger = logger
        var locks: [any Sendable] = try configuration.endpoints.claim(for: .thumbnailer)
        do {
            try FileManager.default.createDirectory(
                atPath: configuration.cache,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o750]
            )
        } catch {
            throw CacheError(
                description: "the cache folder \(configuration.cache) cannot be made: \(error.localizedDescription); "
                    + "choose another --cache"
            )
        }
        locks.append(
            try LockFile(
                path: configuration.cache + "/lock",
                program: ServiceName.thumbnailer.rawValue,
                using: "the cache \(configuration.cache)",
                advice: "stop it or choose another --cache"
            )
        )
        self.locks = locks
        let resources = ResourceFolder(library: configuration.library)
        let disk = try RenditionStore(root: configuration.cache, budget: configuration.cacheBytes)
        let workers = WorkerPool(
            executable: configuration.executable ?? WorkerPool.ownExecutable,
            count: configuration.workers,
            limits: configuration.workerLimits,
            queueLimit: configuration.queue + 16,
            logger: logger
        )
        let thread = PollThread(name: "thumbnailer")
        let limits = MessagingLimits()
        let catalog = try ServiceClient(
            address: configuration.endpoints[.catalog],
            thread: thread,
            limits: limits,
            security: configuration.endpoints.security(of: .catalog),
            logger: logger
        )
        let figures = PictureFigures()
        self.figures = figures
        desk = PictureDesk(
            resources: resources,
            workers: workers,
            report: { await catalog.tell(ReportHarm($0, by: .thumbnailer), logger: logger) },
            memory: RenditionMemory(budget: configuration.memoryBytes),
            disk: disk,
            limit: configuration.queue,
            figures: figures,
            logger: logger
        )
        let pictures = PictureService(
            lookup: { ids, atLeast throws(RPCError) in try await Self.assets(ids, atLeast, catalog) },
            desk: desk,
            largestAttachment: limits.maxAttachmentBytes
        )
        let handler = ThumbnailerHandler(
            pictures: pictures,
            state: ThumbnailerState(catalog: catalog, resources: resources, workers: workers, figures: figures)
        )
        let servers = try RequestServers(
            .thumbnailer,
            address: configuration.address,
            door: configuration.door,
            thread: thread,
            limits: limits,
            logger: logger,
            handler: handler
        )
        address = servers.address
        addresses = servers.addresses
        figures.all.section("requests") { await servers.figures() }
        try await workers.start()
        let desk = desk
        parts =
            [
                ClosingPart("sockets") { await thread.shutdown() }, WorkerPoolPart(workers),
                LoopPart("pictures") { await desk.run() },
            ] + servers.parts
    }

    /// Serves until SIGTERM or SIGINT.
    func run(ready: ReadySignal) async throws {
        try await ServiceHost.run(
            name: .thumbnailer,
            logger: logger,
            endpoints: addresses,
            ready: ready,
            parts: parts
        )
        withExtendedLifetime(locks) {}
    }

    /// Serves until the task is cancelled, for tests.
    func serve() async throws {
        try await ServiceGroup(services: parts, logger: logger).run()
        withExtendedLifetime(locks) {}
    }

    private static func assets(
        _ ids: [ObjectID],
        _ atLeast: ChangeToken?,
        _ catalog: ServiceClient
    ) async throws(RPCError) -> FetchAssets.Result {
        var fetch = FetchDescription(.assets)
        fetch.ids = ids
        return try await catalog.ask(FetchAssets(fetch: fetch, count: ids.count, atLeast: atLeast)).result
    }
}
