import Contracts
import Foundation
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import ServiceLifecycle

/// The editor's composition: creates its components and connects them.
struct EditorService: RunnableService {
    static let name = ServiceName.editor

    /// The address that clients connect to, with the port actually bound.
    let address: EndpointAddress
    let metrics: EditorMetrics
    let addresses: [String]
    let components: [any Service]
    let locks: [any Sendable]
    let logger: Logger

    /// Binds the sockets and starts the workers; requests are answered once the service runs.
    ///
    /// - Throws: the reason why it cannot start, as text for operators
    init(_ configuration: EditorConfiguration, logger: Logger) async throws {
        try configuration.validate()
        self.logger = logger
        locks = try configuration.endpoints.claim(for: .editor)
        let resources = try ResourceFolder(
            library: configuration.library,
            spool: configuration.spoolBytes.map { (configuration.spoolFolder, $0) },
            blockingIO: BlockingIOExecutor()
        )
        let workers = WorkerPool(
            executable: configuration.executable,
            // ImageMagick's threads sleep while they wait for the next call, so that other renders can use the
            // processor.
            environment: ["OMP_WAIT_POLICY": "passive"],
            count: configuration.workers,
            limits: configuration.workerLimits,
            queueLimit: configuration.queue,
            logger: logger
        )
        // The workers start while the rest is created.
        async let workersStarted: Void = workers.start()
        let serializer = PerAssetSerializer(limitPerAsset: configuration.queuePerAsset, limit: configuration.queue)
        let metrics = EditorMetrics()
        self.metrics = metrics
        metrics.all.section("workers") { workers.metrics() }
        if let spool = resources.spool { metrics.all.section("originals") { spool.metrics } }
        metrics.all.section("editsPerAsset") {
            let counts = serializer.metrics
            return ["edits": JSON(counts.count), "assets": JSON(counts.assets)]
        }
        let limits = MessagingLimits()
        let library = try PhotoLibrary(
            endpoints: ServiceEndpoints(configuration.endpoints),
            client: ServiceName.editor.rawValue,
            limits: limits,
            logger: logger
        )
        let report: @Sendable (ResourceJobRunner.WorkerFault) async -> Void = { fault in
            await library.catalog.report(ReportWorkerFault(fault, by: .editor), logger: logger)
        }
        let videoWorkers = WorkerPool(
            executable: configuration.executable,
            count: 1,
            limits: configuration.videoLimits,
            logger: logger
        )
        let listener = configuration.listener
        // Pushed edits carry the name of their key.
        let access = AccessTable(listedKey: { listener?.key(of: $0)?.publicKey.text }) {
            identity,
            newest throws(RPCError) in
            let request = GrantStatus(identity: identity, atLeast: newest)
            return try await library.catalog.ask(request, deadline: .seconds(5)).result
        }
        let edits = EditProcessor(
            catalog: CatalogConnection(
                library: library,
                editor: "\(ProcessInfo.processInfo.hostName) \(configuration.endpoints[.edits])".cut(to: 512),
                largestAttachment: configuration.largestAttachment
            ),
            resources: resources,
            workers: ResourceJobRunner(workers, resources: resources, report: report),
            videos: VideoRenderer(
                resources: resources,
                workers: videoWorkers,
                folder: configuration.videoFolder,
                maxBytes: configuration.videoBytes,
                library: library,
                report: report
            ),
            serializer: serializer,
            metrics: metrics,
            engine: configuration.engine,
            largestAttachment: limits.maxAttachmentBytes,
            unseen: { identity, assets throws(RPCError) in
                guard !Permission(byte: access.cachedPermission(of: identity).value).seesEverything else { return nil }
                for start in stride(from: 0, to: assets.count, by: 1000) {
                    let part = Array(assets[start..<min(start + 1000, assets.count)])
                    let request = GrantStatus(identity: identity, assets: part, atLeast: access.newestChange)
                    let status = try await library.catalog.ask(request, deadline: .seconds(5)).result
                    if let hidden = status.hidden.first { return hidden }
                }
                return nil
            },
            isLimited: { identity throws(RPCError) in
                try await !access.permission(of: identity, nil).seesEverything
            }
        )
        let handler = EditorHandler(
            edits: edits,
            state: ServiceState(
                Self.name,
                methods: EditorRequest.methods + EditorRequest.notifications,
                metrics: metrics.all,
                resources: resources,
                workers: workers
            ) { () throws(RPCError) in try await library.catalog.health(deadline: .seconds(2)) }
        )
        let thread = try PollThread(name: "editor")
        var serverLimits = limits
        serverLimits.requestsPerConnection = configuration.requestsPerConnection
        let refusals = RefusalCounts()
        metrics.all.section("access") { refusals.metrics }
        let grants = GrantFollower(feed: library.changes(since: nil, topics: [FeedTopic.grants]), logger: logger)
        let servers = try RequestServers(
            .editor,
            address: configuration.endpoints[.editor],
            listener: configuration.listener,
            thread: thread,
            limits: serverLimits,
            security: configuration.endpoints.localSecurity,
            traffic: configuration.traffic,
            logger: logger,
            handler: GuardedHandler(handler, access: EditorRequest.access, table: access, refusals: refusals)
        )
        access.onChange { servers.review($0) }
        let pullers = try Self.pullers(configuration, thread: thread, logger: logger)
        let publishing = Self.publishing(
            configuration,
            processor: edits,
            inboxes: pullers,
            access: PublishingAccess(access, refusals),
            logger: logger
        )
        metrics.all.section("published") { await publishing.json() }
        address = servers.address
        addresses = servers.addresses + pullers.map(\.boundAddress.description)
        metrics.all.section("requests") { await servers.metrics() }
        try await workersStarted
        components =
            [
                ClosingComponent("sockets") {
                    await library.close()
                    await thread.shutdown()
                },
                WorkerPoolComponent(workers), WorkerPoolComponent(videoWorkers),
            ] + servers.components + [
                LoopComponent("published edits") { await publishing.run() },
                LoopComponent("grants") {
                    await grants.run(
                        changed: { await access.note($0, at: $1) },
                        confirmed: { access.confirm() },
                        lost: { access.forget() }
                    )
                },
                ClosingComponent("access") { access.close() },
            ]
    }

    private static func publishing(
        _ configuration: EditorConfiguration,
        processor: EditProcessor,
        inboxes: [Puller],
        access: PublishingAccess,
        logger: Logger
    ) -> PublishedEditProcessor {
        PublishedEditProcessor(
            catalog: processor.catalog,
            processor: processor,
            inboxes: inboxes,
            limit: configuration.published,
            // One edit renders while another commits.
            width: configuration.workers + 1,
            rules: EditQueue.Limits(
                unknownPredecessors: configuration.published / 2,
                predecessorTimeout: Int64(configuration.predecessorTimeout) * 1_000_000,
                ofLimitedPublisher: max(1, configuration.published / 4)
            ),
            metrics: processor.metrics.published,
            access: access,
            logger: logger
        )
    }

    /// Returns the sockets that published edits are pushed to: the local one and, with a TCP listener, the one on TCP.
    private static func pullers(
        _ configuration: EditorConfiguration,
        thread: PollThread,
        logger: Logger
    ) throws(MessagingError) -> [Puller] {
        var limits = MessagingLimits()
        limits.maxMessageBytes = 1 << 20
        // Messages read but not yet accepted are lost with the process and published again, so few are read ahead.
        limits.inboxMessages = 256
        limits.inboxBytes = 8 << 20
        let address = configuration.endpoints[.edits]
        var pullers = [
            try Puller(
                address: address,
                thread: thread,
                limits: limits,
                security: configuration.endpoints.localSecurity
            )
        ]
        LoopbackWarning.log([pullers[0].boundAddress], logger)
        if let listener = configuration.listener {
            pullers.append(
                try Puller(
                    address: listener.address(of: .edits),
                    thread: thread,
                    limits: limits,
                    security: listener.security(of: .edits)
                )
            )
        }
        return pullers
    }
}

extension ServiceEndpoints {
    /// Converts the endpoints to the client library's form.
    init(_ endpoints: Endpoints) {
        self.init(
            catalog: endpoints[.catalog],
            thumbnailer: endpoints[.thumbnailer],
            editor: endpoints[.editor],
            changeBroker: endpoints[.broker],
            feed: endpoints[.feed],
            edits: endpoints[.edits],
            security: endpoints.security
        )
        catalogs = endpoints.all(.catalog)
    }
}
