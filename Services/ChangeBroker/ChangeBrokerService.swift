import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import ServiceLifecycle

/// The change-broker with all its components. The command and the tests create it in the same way.
struct ChangeBrokerService: WiredService {
    static let name = ServiceName.changeBroker

    /// The bound request address; a wildcard port is replaced by the actual one.
    let requestsAddress: EndpointAddress
    /// The bound feed address.
    let feedAddress: EndpointAddress

    let feed: RecordFeed
    let addresses: [String]
    private let servers: RequestServers
    private let threads: [PollThread]
    private let follower: CatalogFollower
    let logger: Logger
    private let leaseCheck: Duration
    private let carrier: FetchCarrier

    /// Binds both addresses; starts nothing.
    ///
    /// - Throws: ``MessagingError`` if an address cannot be used
    init(_ configuration: ChangeBrokerConfiguration, logger: Logger) throws {
        let thread = try PollThread(name: "broker")
        // libzmq takes long to forget the topics of a subscriber that had many: requests do not wait for that.
        let feedThread = try PollThread(name: "feed")
        var limits = MessagingLimits()
        // All requests can be repeated, so a stop does not wait long for readers.
        limits.drainTimeout = .seconds(2)
        // The catalog is on this machine or near it, and all clients depend on the connection: retry quickly.
        limits.reconnectIntervalMax = configuration.catalogPause
        limits.topics = configuration.maxTopics
        limits.topicsPerSubscriber = configuration.maxTopicsPerConnection
        let catalog = try ServiceClient(
            address: configuration.catalog,
            thread: thread,
            limits: limits,
            security: configuration.catalogSecurity,
            logger: logger
        )
        // CURVE is configured per socket, so clients on other machines connect to a separate one.
        var publishers = [
            try Publisher(
                address: configuration.feed,
                thread: feedThread,
                limits: limits,
                security: configuration.localSecurity,
                logger: logger
            )
        ]
        LoopbackWarning.log([publishers[0].boundAddress], logger)
        if let door = configuration.door {
            publishers.append(
                try Publisher(
                    address: door.address(of: .feed),
                    thread: feedThread,
                    limits: limits,
                    security: door.security(of: .feed),
                    logger: logger
                )
            )
        }
        let feed = RecordFeed(
            configuration,
            publishers: publishers,
            instance: PhotoLibrary.randomTransaction(),
            logger: logger
        )
        let history = History(feed: feed, catalog: catalog)
        let figures = Hosting::Figures()
        let servers = try RequestServers(
            .broker,
            address: configuration.requests,
            door: configuration.door,
            thread: thread,
            limits: limits,
            security: configuration.localSecurity,
            traffic: configuration.traffic,
            logger: logger,
            handler: ChangeBrokerHandler(
                history: history,
                configuration: configuration,
                state: ServiceState(Self.name, methods: ChangeBrokerRequest.methods, figures: figures) {
                    (await feed.problems, await feed.token?.sequence ?? 0)
                },
                clock: .system
            )
        )
        figures.section("feed") { await feed.figures() }
        figures.section("requests") { await servers.figures() }
        figures.section("publisher") { [local = publishers[0]] in await local.figures() }
        if publishers.count > 1 {
            figures.section("publisherTCP") { [remote = publishers[1]] in await remote.figures() }
        }
        figures.section("catalog") { await catalog.connectionFigures() }
        self.requestsAddress = servers.address
        self.feedAddress = publishers[0].boundAddress
        self.addresses = servers.addresses + publishers.map(\.boundAddress.description)
        self.feed = feed
        self.servers = servers
        self.threads = [thread, feedThread]
        self.follower = CatalogFollower(catalog: catalog, feed: feed, configuration: configuration, logger: logger)
        self.logger = logger
        self.leaseCheck = configuration.fetchLeaseCheck
        self.carrier = FetchCarrier(history: history, configuration: configuration)
    }

    /// The components in dependency order; they are stopped in reverse order.
    var parts: [any Service] {
        [
            ClosingPart("sockets") { [threads] in for thread in threads { await thread.shutdown() } },
            LoopPart("head messages") { [feed] in await feed.publishHeads() },
            LoopPart("leases") { [self] in await expireLeases() },
            LoopPart("observed fetches") { [carrier] in await carrier.run() },
            LoopPart("the catalog's records") { [follower] in await follower.run() },
        ] + servers.parts + [
            // Stopped first, because active followers would delay the server's stop.
            ClosingPart("followers") { [feed] in await feed.dismissFollowers() }
        ]
    }

    /// Ends observations whose lease has run out, until cancelled.
    private func expireLeases() async {
        for await _ in Waiting.ticks(every: leaseCheck) {
            await feed.expireFetches(now: MonotonicClock.system.nowMicroseconds())
        }
    }

    /// Runs until cancelled, without handling signals; for tests.
    func runUntilCancelled() async {
        await withTaskGroup { group in
            group.addTask { await feed.publishHeads() }
            group.addTask { await follower.run() }
            group.addTask { await carrier.run() }
            group.addTask { await expireLeases() }
            group.addTask { await servers.run() }
            await group.waitForAll()
        }
        for thread in threads { await thread.shutdown() }
    }
}
