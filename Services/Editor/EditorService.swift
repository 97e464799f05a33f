import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import ServiceLifecycle

/// The editor's composition: creates its components and connects them.
struct EditorService: WiredService {
    static let name = ServiceName.editor

    /// The address that clients connect to, with the port actually bound.
    let address: EndpointAddress
    let figures: EditFigures
    let addresses: [String]
    let parts: [any Service]
    let locks: [any Sendable]
    let logger: Logger

    /// Binds the sockets and starts the workers; requests are answered once the service runs.
    ///
    /// - Throws: the reason why it cannot start, as text for operators
    init(_ configuration: EditorConfiguration, logger: Logger) async throws {
        try configuration.validate()
        self.logger = logger
        locks = try configuration.endpoints.claim(for: .editor)
        let resources = ResourceFolder(library: configuration.library)
        let workers = WorkerPool(
            executable: configuration.executable,
            count: configuration.workers,
            limits: configuration.workerLimits,
            queueLimit: configuration.queue,
            logger: logger
        )
        let turns = Turns(limitPerAsset: configuration.queuePerAsset, limit: configuration.queue)
        let figures = EditFigures()
        self.figures = figures
        figures.all.section("workers") { workers.figures() }
        figures.all.section("turns") {
            let present = turns.figures
            return ["edits": JSON(present.count), "assets": JSON(present.assets)]
        }
        let limits = MessagingLimits()
        let library = try PhotoLibrary(
            endpoints: ServiceEndpoints(configuration.endpoints),
            client: ServiceName.editor.rawValue,
            limits: limits,
            logger: logger
        )
        let edits = EditDesk(
            catalog: EditCatalog(library: library, largestAttachment: configuration.largestAttachment),
            resources: resources,
            workers: ResourceWork(workers) { harm in
                await library.catalog.tell(ReportHarm(harm, by: .editor), logger: logger)
            },
            turns: turns,
            figures: figures,
            largestAttachment: limits.maxAttachmentBytes
        )
        let handler = EditorHandler(
            edits: edits,
            state: ServiceState(
                Self.name,
                methods: EditorRequest.methods + EditorRequest.notifications,
                figures: figures.all,
                resources: resources,
                workers: workers
            ) { () throws(RPCError) in try await library.catalog.health(deadline: .seconds(2)) }
        )
        let thread = try PollThread(name: "editor")
        let servers = try RequestServers(
            .editor,
            address: configuration.endpoints[.editor],
            door: configuration.door,
            thread: thread,
            limits: limits,
            security: configuration.endpoints.localSecurity,
            traffic: configuration.traffic,
            logger: logger,
            handler: handler
        )
        let pullers = try Self.pullers(configuration, thread: thread, logger: logger)
        let publishing = Self.publishing(configuration, desk: edits, inboxes: pullers, logger: logger)
        figures.all.section("published") { await publishing.json() }
        address = servers.address
        addresses = servers.addresses + pullers.map(\.boundAddress.description)
        figures.all.section("requests") { await servers.figures() }
        try await workers.start()
        parts =
            [
                ClosingPart("sockets") {
                    await library.close()
                    await thread.shutdown()
                },
                WorkerPoolPart(workers),
            ] + servers.parts + [
                LoopPart("published edits") { await publishing.run() }
            ]
    }

    private static func publishing(
        _ configuration: EditorConfiguration,
        desk: EditDesk,
        inboxes: [Puller],
        logger: Logger
    ) -> PublishedEdits {
        PublishedEdits(
            catalog: desk.catalog,
            desk: desk,
            inboxes: inboxes,
            limit: configuration.published,
            // One edit renders while another commits.
            width: configuration.workers + 1,
            rules: EditQueue.Limits(
                strangers: configuration.published / 2,
                patience: Int64(configuration.patience) * 1_000_000
            ),
            figures: desk.figures.published,
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
        // While the inbox is full, nothing is read and libzmq's queues fill too.
        limits.receiveHighWaterMark = 16
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
        if let door = configuration.door {
            pullers.append(
                try Puller(
                    address: door.address(of: .edits),
                    thread: thread,
                    limits: limits,
                    security: door.security(of: .edits)
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
    }
}
