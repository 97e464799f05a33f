import Basics
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
struct CatalogService: RunnableService {
    static let name = ServiceName.catalog

    let configuration: CatalogConfiguration
    let logger: Logger
    let store: LibraryStore
    let writer: TransactionWriter
    let tail: ChangeLogTail
    let resources: ResourceStore
    let servers: RequestServers
    let handler: CatalogHandler
    let uploads: UploadRegistry
    let workers: WorkerPool
    let damageScanner: DamageScanner
    let rereader: MetadataRereader
    let collector: ResourceCollector
    let grants: GrantService
    let availability: LibraryAvailability
    private let follower: StandbyFollower
    private let originals: Originals
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
        environment: CatalogEnvironment = CatalogEnvironment(),
        logger: Logger
    ) async throws {
        try configuration.validate()
        let folder = configuration.library
        try LibraryFolder.requireNotMoved(configuration)
        try configuration.knownLibraries?.requireLibrary(at: folder, database: configuration.libraryFile)
        try LibraryFolder.make(folder)
        lock = try LibraryLock(folder)
        let workers = Self.makePool(configuration.workers, configuration, logger)
        async let workersStarted: Void = workers.start()  // while the library is opened
        let resources = try Self.openResources(folder, logger)
        let store = try Self.openStore(configuration, environment, logger)
        LibraryFolder.remember(folder, store.historyID, in: configuration.knownLibraries, logger)
        let availability = LibraryAvailability(
            try FolderAvailability(folder: folder, database: store.path, resources: resources),
            of: store,
            now: environment.now,
            logger: logger
        )
        try await workersStarted
        let tail = ChangeLogTail(head: store.startSequence)
        let retentionClock = RetentionClock(
            last: try await store.retentionTime(),
            wall: environment.now,
            monotonic: environment.elapsed,
            logger: logger
        )
        let lastChanges = try LastChangeFile(
            path: LastChangeFile.path(in: folder),
            library: store.historyID,
            sequence: store.startSequence
        )
        let registry = GrantRegistry(
            try await store.read { try $0.grants.all() },
            keys: GrantRegistry.Keys(configuration.listener)
        )
        let writer = TransactionWriter(
            store: store,
            tail: tail,
            retention: Self.retention(configuration),
            context: Self.writeContext(configuration, environment, retentionClock, lastChanges),
            limits: TransactionWriter.Limits(waiting: configuration.writeQueue),
            whenCommitted: { registry.apply($0) },
            logger: logger,
            clock: environment.clock,
            onDiskFailure: { availability.note($0, isWriting: true) },
            onDiskRecovery: { availability.forgetFailures() }
        )
        let blockingIO = BlockingIOExecutor(limit: configuration.fileQueue)
        let uploads = UploadRegistry(
            resources: resources,
            blockingIO: blockingIO,
            clock: environment.clock,
            limits: configuration.uploads,
            makeName: environment.makeName
        )
        let collector = ResourceCollector(
            store: store,
            resources: resources,
            blockingIO: blockingIO,
            uploads: uploads,
            clock: environment.clock,
            after: Int64(configuration.collectAfterSeconds) * 1_000_000,
            logger: logger
        )
        let metrics = Hosting.Metrics()
        metrics.section("files") { blockingIO.metrics }
        let services = ServiceIdentities(listener: configuration.listener)
        let access = AccessTable(known: { registry.permission(of: $0) })
        let refusals = RefusalCounts()
        metrics.section("access") { refusals.metrics }
        let grants = GrantService(
            registry: registry,
            table: access,
            store: store,
            writer: writer,
            clock: environment.clock,
            now: environment.now,
            logger: logger
        )
        let quarantine = try await Quarantine(store: store, services: services, now: environment.now)
        let work = ResourceJobRunner(workers) { fault in
            // This fails only if the catalog's own disk fails; the next attempt will report the bytes again.
            _ = try? await quarantine.report(ReportWorkerFault(fault, by: .catalog))
        }
        if configuration.remoteStorage != nil { store.useLocalFiles(of: resources) }
        let fetches = FetchService(
            store: store,
            quarantine: quarantine,
            remoteResources: configuration.remoteStorage.map { _ in resources },
            cacheBytes: configuration.resultCacheBytes,
            transients: TransientCollectionRegistry(clock: environment.clock, wallClock: environment.now)
        )
        let extractor = MetadataExtractor(work: work, quarantine: quarantine, resources: resources)
        let healing = ResourceHealing(
            store: store,
            writer: writer,
            quarantine: quarantine,
            extractor: extractor,
            logger: logger
        )
        await uploads.connect(discard: { await collector.discard($0) }, heal: { await healing.removeMarks(of: $0) })
        let originals = try await Originals(
            configuration,
            environment,
            store: store,
            resources: resources,
            blockingIO: blockingIO,
            tail: tail,
            logger: logger
        )
        let ingestor = ResourceIngestor(
            resources: resources,
            syncs: ResourceSyncQueue(resources),
            blockingIO: blockingIO,
            uploads: uploads,
            roots: try ImportRoots(configuration.importRoots),
            extractor: extractor,
            store: store,
            throttle: originals.remote?.throttle,
            maxBytes: configuration.maxFileBytes,
            onDiskFailure: { availability.note($0, isWriting: true) },
            logger: logger
        )
        let handler = CatalogHandler(
            barrier: SequenceBarrier(store: store, tail: tail, clock: environment.clock),
            fetches: fetches,
            keys: KeyDelivery(store: store),
            changes: ChangeService(
                store: store,
                writer: writer,
                ingestor: ingestor,
                fetches: fetches,
                uploads: uploads,
                healing: healing,
                collector: collector,
                services: services,
                grants: grants
            ),
            history: HistoryService(store: store, tail: tail),
            edits: EditReader(store, services, tail, clock: environment.clock),
            delivery: ResourceDelivery(store: store, blockingIO: blockingIO, opener: originals.opener),
            exports: ResourceExport(store: store, blockingIO: blockingIO, opener: originals.opener),
            storage: StorageService(store: store, resources: resources, fetches: fetches, originals: originals),
            jobs: UploadJobService(store, resources, originals.remote, clock: environment.clock),
            uploads: uploads,
            quarantine: quarantine,
            backups: BackupService(
                store: store,
                resources: resources,
                blockingIO: blockingIO,
                now: environment.now,
                logger: logger
            ),
            rescans: RescanService(
                resources: resources,
                blockingIO: blockingIO,
                roots: configuration.importRoots,
                maxBytes: configuration.maxFileBytes,
                now: environment.now
            ),
            collector: collector,
            grants: grants,
            availability: availability,
            state: ServiceState(
                Self.name,
                methods: CatalogRequest.methods,
                metrics: metrics,
                role: { store.role },
                conditionNow: {
                    let problems = availability.problems + [store.database.durabilityProblem].compactMap { $0 }
                    return (problems.isEmpty ? [writer.problem].compactMap { $0 } : problems, tail.head)
                }
            ),
            logger: logger
        )
        let thread = try PollThread(name: "catalog")
        let servers = try configuration.bindRequestServers(
            on: thread,
            clock: environment.clock,
            logger: logger,
            handler: GuardedHandler(handler, access: CatalogRequest.access, table: access, refusals: refusals)
        )
        let transients = fetches.transients
        access.onChange { identities in
            servers.review(identities)
            for identity in identities {
                if !access.mayKeep(identity) { transients.releaseAll(of: identity) }
                if !access.mayKeep(identity, for: .add) { Task { await uploads.removeAll(of: identity) } }
            }
        }
        let damageScanner = DamageScanner(
            store: store,
            tail: tail,
            writer: writer,
            quarantine: quarantine,
            resources: resources,
            executable: configuration.workerExecutable,
            limits: configuration.workerLimits,
            logger: logger
        )
        let rereader = MetadataRereader(
            store: store,
            writer: writer,
            quarantine: quarantine,
            resources: resources,
            workers: Self.makePool(1, configuration, logger),
            rate: configuration.rereadRate,
            logger: logger
        )
        follower = StandbyFollower(store, tail, registry, lastChanges, availability, logger, environment.makeName)
        self.originals = originals
        self.availability = availability
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
        self.damageScanner = damageScanner
        self.rereader = rereader
        self.collector = collector
        self.grants = grants
        self.thread = thread
        registerSections(of: metrics, fetches, quarantine)
    }

    private static func openResources(_ folder: String, _ logger: Logger) throws -> ResourceStore {
        let resources = try ResourceStore(root: "\(folder)/resources")
        let cleared = try resources.clearIncoming()
        if cleared > 0 { logger.info("removed unfinished files", metadata: ["count": "\(cleared)"]) }
        return resources
    }

    private static func makePool(_ count: Int, _ configuration: CatalogConfiguration, _ logger: Logger) -> WorkerPool {
        WorkerPool(
            executable: configuration.workerExecutable,
            count: count,
            limits: configuration.workerLimits,
            // An import can wait until a worker is ready.
            keptWorkers: 0,
            logger: logger
        )
    }

    private static func openStore(
        _ configuration: CatalogConfiguration,
        _ environment: CatalogEnvironment,
        _ logger: Logger
    ) throws -> LibraryStore {
        var options = LibraryStore.Options()
        options.readers = configuration.readers
        options.pageCacheBytes = configuration.pageCacheBytes
        // The rest of the check runs while the service answers.
        options.checkSeconds = min(configuration.checkSeconds, Self.checkSecondsAtStart)
        return try LibraryStore(
            folder: configuration.library,
            server: configuration.server,
            replica: configuration.replica,
            options: options,
            now: environment.now(),
            newHistoryID: environment.makeName(),
            logger: logger
        )
    }

    /// The time for checking the database before the service answers, in seconds: enough for ten thousand assets.
    private static let checkSecondsAtStart = 0.05

    /// Repeats a check of the database that was not finished at the start, while the service answers; then waits for
    /// the end of the service.
    ///
    /// - Throws: the damage, which ends the service
    private static func checkDatabase(
        of store: LibraryStore,
        _ configuration: CatalogConfiguration,
        _ logger: Logger
    ) async throws {
        if store.isCheckUnfinished {
            do throws(StorageError) {
                let check = try await DatabaseCheck.quick(path: store.path, seconds: configuration.checkSeconds)
                if check == .unfinished, !Task.isCancelled {
                    logger.notice(
                        "the database check at start did not finish; run catalog --check for a complete one",
                        metadata: ["seconds": "\(configuration.checkSeconds)"]
                    )
                }
            } catch {
                logger.critical("the database is damaged", metadata: ["error": "\(error.message)"])
                throw error
            }
        }
        await Promise<Void>().value(ifCancelled: ())
    }

    /// Registers the sections of the method `figures`.
    private func registerSections(of metrics: Hosting.Metrics, _ fetches: FetchService, _ quarantine: Quarantine) {
        let (servers, workers, damageScanner, rereader, writer) = (servers, workers, damageScanner, rereader, writer)
        let (store, tail, uploads, collector, grants) = (store, tail, uploads, collector, grants)
        metrics.section("requests") { await servers.metrics() }
        metrics.section("workers") { workers.metrics() }
        metrics.section("examiner") { damageScanner.metrics }
        metrics.section("reread") { rereader.metrics }
        metrics.section("collector") { collector.metrics }
        metrics.section("writes") {
            var json = writer.metrics.json
            json["queued"] = JSON(writer.queueDepth)
            json["walBytes"] = .int(store.walBytes)
            json["sequence"] = .int(tail.head)
            json["waitingForRecords"] = JSON(tail.waiting)
            return json
        }
        metrics.section("store") { store.database.metrics }
        metrics.section("fetches") {
            [
                "cachedResults": JSON(fetches.cachedResults), "cachedBytes": JSON(fetches.cacheBytes),
                "transients": JSON(fetches.transients.count),
            ]
        }
        metrics.section("grants") { grants.metrics }
        metrics.section("quarantine") { ["resources": JSON(quarantine.count)] }
        metrics.section("uploads") { ["open": JSON(await uploads.count)] }
        let folder = configuration.library
        metrics.section("library") {
            var json = (try? await store.read { try $0.metrics() }) ?? [:]
            json["folder"] = .string(folder)
            return json
        }
    }

    /// The components in the order of their dependencies; they stop last to first.
    var components: [any Service] {
        let (store, thread, tail, writer, lock, grants) = (store, thread, tail, writer, lock, grants)
        let (configuration, logger, quarantine) = (configuration, logger, handler.quarantine)
        let (availability, resources, remote, follower) = (availability, resources, originals.remote, follower)
        let election = store.election.map { _ in LoopComponent("election") { try await follower.run(quarantine) } }
        return [
            ClosingComponent("lock") { lock.release() },
            ClosingComponent("database") { try store.close() },
        ] + (election.map { [$0] } ?? []) + [
            ClosingComponent("trimming") { writer.stopTrimming() },
            ClosingComponent("poll thread") { await thread.shutdown() },
            LoopComponent("database check") { try await Self.checkDatabase(of: store, configuration, logger) },
            WorkerPoolComponent(workers),
            WriterComponent(store: store, component: damageScanner),
            WriterComponent(store: store, component: rereader),
            WriterComponent(store: store, component: collector),
            WriterComponent(
                store: store,
                component: ScheduledChanges(writer: writer, interval: configuration.clockInterval, logger: logger)
            ),
            LoopComponent("grants") { await grants.watch() },
            LoopComponent("availability") {
                try await availability.run(
                    storeProblem: { remote?.problemMessage },
                    probe: { try await store.probe(resources) }
                )
            },
        ] + (originals.uploader.map { [$0] } ?? []) + servers.components + [
            // Streams end before the server waits for its open requests.
            ClosingComponent("streams") { tail.close() },
            ClosingComponent("access") { grants.table.close() },
        ]
    }

    /// Checks the whole database, if there is one; the service may be running.
    static func checkDatabase(_ configuration: CatalogConfiguration) throws(StorageError) {
        guard configuration.server == nil else { return }
        let path = configuration.library + "/library.sqlite"
        guard access(path, F_OK) == 0 else { return }
        try DatabaseCheck.full(path: path)
    }

    private static func retention(_ configuration: CatalogConfiguration) -> RetentionPolicy {
        RetentionPolicy(
            age: Int64(configuration.historyDays) * 86_400_000_000,
            bytes: configuration.historyBytes,
            interval: configuration.trimInterval
        )
    }

    private static func writeContext(
        _ configuration: CatalogConfiguration,
        _ environment: CatalogEnvironment,
        _ retentionClock: RetentionClock,
        _ lastChanges: LastChangeFile
    ) -> GroupCommit.WriteContext {
        GroupCommit.WriteContext(
            maxEntities: configuration.maxEntities,
            maxRecordBytes: configuration.maxRecordBytes,
            recentSpan: Int64(configuration.recentDays) * 86_400_000_000,
            trashSpan: Int64(configuration.trashDays) * 86_400_000_000,
            now: environment.now,
            retentionNow: retentionClock.now,
            makeID: IdentifierGenerator(now: environment.now).make,
            lastChanges: lastChanges
        )
    }
}
