import Contracts
import Glibc
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import ServiceLifecycle
import Storage
import Synchronization

/// The catalog service. It creates and connects all components; no other type knows all of them.
struct CatalogService: WiredService {
    static let name = ServiceName.catalog

    let configuration: CatalogConfiguration
    let logger: Logger
    let store: LibraryStore
    let writer: Writer
    let tail: ChangeTail
    let resources: ResourceStore
    let servers: RequestServers
    let handler: CatalogHandler
    let uploads: UploadDesk
    let workers: WorkerPool
    let examiner: PictureExaminer
    let collector: ResourceCollector
    private let thread: PollThread
    private let lock: LibraryLock

    /// The address that receives requests.
    var address: EndpointAddress { servers.address }
    var addresses: [String] { servers.addresses }

    /// Locks and opens the library, starts the workers and binds the sockets. Requests are processed once the
    /// components run.
    ///
    /// - Throws: an error if a setting is not valid, the library is in use or damaged, or the address cannot be bound
    init(
        _ configuration: CatalogConfiguration,
        surroundings: CatalogSurroundings = CatalogSurroundings(),
        logger: Logger
    ) async throws {
        try configuration.validate()
        let folder = configuration.library
        try LibraryFolder.make(folder)
        lock = try LibraryLock(folder)
        let resources = try Self.openResources(folder, logger)
        let store = try Self.openStore(configuration, surroundings, logger)
        let workers = WorkerPool(
            executable: configuration.workerExecutable,
            count: configuration.workers,
            limits: configuration.workerLimits,
            logger: logger
        )
        try await workers.start()
        let tail = ChangeTail(head: store.startSequence)
        let time = RetentionTime(
            last: try await store.retentionMoment(),
            wall: surroundings.now,
            monotonic: surroundings.clock,
            logger: logger
        )
        let writer = Writer(
            store: store,
            tail: tail,
            retention: Self.retention(configuration),
            rules: Self.rules(configuration, surroundings, retention: time),
            limits: Writer.Limits(waiting: configuration.writeQueue),
            logger: logger,
            clock: surroundings.clock
        )
        let crew = FileCrew(limit: configuration.fileQueue)
        let uploads = UploadDesk(
            resources: resources,
            crew: crew,
            clock: surroundings.clock,
            limits: configuration.uploads,
            makeName: surroundings.makeName
        )
        let collector = ResourceCollector(
            store: store,
            resources: resources,
            crew: crew,
            uploads: uploads,
            clock: surroundings.clock,
            after: Int64(configuration.collectAfterSeconds) * 1_000_000,
            logger: logger
        )
        await uploads.discard { await collector.discard($0) }
        let figures = Hosting.Figures()
        figures.section("files") { crew.figures }
        let quarantine = try await Quarantine(store: store, now: surroundings.now)
        let work = ResourceWork(workers) { harm in
            // This fails only if the catalog's own disk fails; the next attempt will report the bytes again.
            _ = try? await quarantine.report(ReportHarm(harm, by: .catalog))
        }
        let fetches = FetchEngine(
            store: store,
            quarantine: quarantine,
            cacheBytes: configuration.resultCacheBytes,
            transients: TransientDesk(clock: surroundings.clock)
        )
        let pictures = PictureReader(work: work, quarantine: quarantine, resources: resources)
        let services = ServiceIdentities(door: configuration.door)
        let handler = CatalogHandler(
            store: store,
            writer: writer,
            tail: tail,
            fetches: fetches,
            history: HistoryReader(store: store, tail: tail),
            intake: ResourceIntake(
                resources: resources,
                crew: crew,
                uploads: uploads,
                roots: try ImportRoots(configuration.importRoots),
                pictures: pictures,
                store: store,
                maxBytes: configuration.maxFileBytes,
                healing: ResourceHealing(
                    store: store,
                    writer: writer,
                    quarantine: quarantine,
                    pictures: pictures,
                    logger: logger
                ),
                logger: logger
            ),
            collector: collector,
            delivery: ResourceDelivery(store: store, resources: resources, crew: crew),
            uploads: uploads,
            quarantine: quarantine,
            backups: BackupDesk(
                store: store,
                resources: resources,
                crew: crew,
                now: surroundings.now,
                logger: logger
            ),
            rescans: RescanDesk(
                resources: resources,
                crew: crew,
                roots: configuration.importRoots,
                maxBytes: configuration.maxFileBytes,
                now: surroundings.now
            ),
            services: services,
            edits: EditReader(store: store, services: services),
            state: ServiceState(Self.name, methods: CatalogRequest.methods, figures: figures) {
                ([writer.problem].compactMap { $0 }, tail.head)
            },
            clock: surroundings.clock,
            logger: logger
        )
        let thread = try PollThread(name: "catalog")
        let servers = try RequestServers(
            .catalog,
            address: configuration.address,
            door: configuration.door,
            thread: thread,
            security: configuration.localSecurity,
            traffic: configuration.traffic,
            clock: surroundings.clock,
            logger: logger,
            handler: handler
        )
        let examiner = PictureExaminer(
            store: store,
            tail: tail,
            writer: writer,
            quarantine: quarantine,
            resources: resources,
            executable: configuration.workerExecutable,
            limits: configuration.workerLimits,
            logger: logger
        )
        self.configuration = configuration
        self.logger = logger
        self.store = store
        self.writer = writer
        self.tail = tail
        self.resources = resources
        self.servers = servers
        self.handler = handler
        self.uploads = uploads
        self.workers = workers
        self.examiner = examiner
        self.collector = collector
        self.thread = thread
        report(to: figures, fetches, quarantine)
    }

    private static func openResources(_ folder: String, _ logger: Logger) throws -> ResourceStore {
        let resources = try ResourceStore(root: "\(folder)/resources")
        let cleared = try resources.clearIncoming()
        if cleared > 0 { logger.info("removed unfinished files", metadata: ["count": "\(cleared)"]) }
        return resources
    }

    private static func openStore(
        _ configuration: CatalogConfiguration,
        _ surroundings: CatalogSurroundings,
        _ logger: Logger
    ) throws -> LibraryStore {
        var options = DatabaseFileOptions()
        options.readers = configuration.readers
        options.checkSeconds = configuration.checkSeconds
        let store = try LibraryStore(
            folder: configuration.library,
            options: options,
            now: surroundings.now(),
            newHistory: surroundings.makeName(),
            logger: logger
        )
        if store.database.check == .unfinished {
            logger.notice(
                "the database check at start did not finish; run catalog --check for a complete one",
                metadata: ["seconds": "\(configuration.checkSeconds)"]
            )
        }
        return store
    }

    /// Registers the sections of the method `figures`.
    private func report(to figures: Hosting.Figures, _ fetches: FetchEngine, _ quarantine: Quarantine) {
        let (servers, workers, examiner, writer) = (servers, workers, examiner, writer)
        let (store, tail, uploads, collector) = (store, tail, uploads, collector)
        figures.section("requests") { await servers.figures() }
        figures.section("workers") { workers.figures() }
        figures.section("examiner") { examiner.figures }
        figures.section("collector") { collector.figures }
        figures.section("writes") {
            var json = writer.figures.json
            json["queued"] = JSON(writer.queueDepth)
            json["walBytes"] = .int(store.walBytes)
            json["sequence"] = .int(tail.head)
            json["waitingForRecords"] = JSON(tail.waiting)
            return json
        }
        figures.section("fetches") {
            [
                "cachedResults": JSON(fetches.cachedResults), "cachedBytes": JSON(fetches.cacheBytes),
                "transients": JSON(fetches.transients.count),
            ]
        }
        figures.section("quarantine") { ["resources": JSON(quarantine.count)] }
        figures.section("uploads") { ["open": JSON(await uploads.count)] }
        figures.section("library") {
            (try? await store.read { try $0.figures() }) ?? [:]
        }
    }

    /// The components in the order of their dependencies; they stop last to first.
    var parts: [any Service] {
        let (store, thread, tail, writer, lock) = (store, thread, tail, writer, lock)
        return [
            ClosingPart("lock") { lock.release() },
            ClosingPart("database") { try store.close() },
            ClosingPart("trimming") { writer.stopTrimming() },
            ClosingPart("poll thread") { await thread.shutdown() },
            WorkerPoolPart(workers),
            examiner,
            collector,
            ClockPart(writer: writer, interval: configuration.clockInterval, logger: logger),
        ] + servers.parts + [
            // Streams end before the server waits for its open requests.
            ClosingPart("streams") { tail.close() }
        ]
    }

    /// Checks the whole database, if there is one; the service may be running.
    static func checkDatabase(_ configuration: CatalogConfiguration) throws(StorageError) {
        let path = configuration.library + "/library.sqlite"
        guard access(path, F_OK) == 0 else { return }
        try DatabaseCheck.full(path: path)
    }

    private static func retention(_ configuration: CatalogConfiguration) -> Retention {
        Retention(
            age: Int64(configuration.historyDays) * 86_400_000_000,
            bytes: configuration.historyBytes,
            interval: configuration.trimInterval
        )
    }

    private static func rules(
        _ configuration: CatalogConfiguration,
        _ surroundings: CatalogSurroundings,
        retention time: RetentionTime
    ) -> BatchStore.WriteRules {
        BatchStore.WriteRules(
            maxEntities: configuration.maxEntities,
            maxRecordBytes: configuration.maxRecordBytes,
            recentSpan: Int64(configuration.recentDays) * 86_400_000_000,
            trashSpan: Int64(configuration.trashDays) * 86_400_000_000,
            now: surroundings.now,
            retentionNow: time.now,
            makeID: IdentifierSource(now: surroundings.now).make
        )
    }
}

/// The library's lock, held until every other component has stopped.
private final class LibraryLock: Sendable {
    private let file: Mutex<LockFile?>

    init(_ folder: String) throws {
        let lock = try LockFile(
            path: "\(folder)/lock",
            program: "catalog",
            using: folder,
            advice: "stop it or choose another --library"
        )
        file = Mutex(lock)
    }

    func release() { file.withLock { $0 = nil } }
}
