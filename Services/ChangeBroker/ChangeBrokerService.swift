import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import ServiceLifecycle

/// The change-broker with all its components. The command and the tests create it in the same way.
struct ChangeBrokerService: RunnableService {
    static let name = ServiceName.changeBroker

    /// The bound request address; a wildcard port is replaced by the actual one.
    let requestsAddress: EndpointAddress
    /// The bound feed address.
    let feedAddress: EndpointAddress

    let feed: RecordFeed
    let addresses: [String]
    private let servers: RequestServers
    private let threads: [PollThread]
    private let follower: RecordFollower
    private let availability: AvailabilityFollower
    private let jobs: UploadJobFollower
    let logger: Logger
    private let leaseCheck: Duration
    private let fetchUpdater: ObservedFetchUpdater
    private let access: AccessTable

    /// Binds both addresses; starts nothing.
    ///
    /// - Throws: ``MessagingError`` if an address cannot be used
    init(_ configuration: ChangeBrokerConfiguration, logger: Logger) throws {
        let thread = try PollThread(name: "broker")
        // libzmq takes long to remove the topics of a subscriber that had many; requests must not wait for that.
        let feedThread = try PollThread(name: "feed")
        // Records are parsed on the thread that receives them. With a thread for each, neither requests nor the newest
        // records wait for pages of history.
        let catalogThread = try PollThread(name: "catalog")
        let historyThread = try PollThread(name: "history")
        var limits = MessagingLimits()
        // All requests can be repeated, so a stop does not wait long for readers.
        limits.drainTimeout = .seconds(2)
        // The catalog is on this machine or near it, and all clients depend on the connection: retry quickly.
        limits.reconnectIntervalMax = configuration.catalogRetryDelay
        limits.topics = configuration.maxTopics
        limits.topicsPerSubscriber = configuration.maxTopicsPerConnection
        func catalog(_ thread: PollThread) throws(MessagingError) -> ServiceClient {
            try ServiceClient(
                catalogs: configuration.catalogs,
                thread: thread,
                limits: limits,
                security: configuration.remoteSecurity,
                logger: logger
            )
        }
        let source =
            try configuration.upstream.map { upstream throws(MessagingError) in
                try ServiceClient(
                    address: upstream,
                    thread: catalogThread,
                    limits: limits,
                    security: configuration.security(of: upstream),
                    logger: logger
                )
            } ?? catalog(catalogThread)
        let historyCatalog = try catalog(historyThread)
        // On a connection of its own, small requests do not wait for the results and pages that are being read.
        let catalogForStatus = try catalog(historyThread)
        let access = AccessTable { identity, newest throws(RPCError) in
            let request = GrantStatus(identity: identity, atLeast: newest)
            return try await catalogForStatus.ask(request, deadline: .seconds(5)).result
        }
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
        if let listener = configuration.listener {
            publishers.append(
                try Publisher(
                    address: listener.address(of: .feed),
                    thread: feedThread,
                    limits: limits,
                    // The live feed has all changes: it is for identities that may read the whole library.
                    security: listener.security(of: .feed) { access.mayRead($0, key: $1) },
                    logger: logger
                )
            )
        }
        let feed = RecordFeed(
            configuration,
            publishers: publishers,
            instance: PhotoLibrary.uniqueTransaction(),
            access: access,
            logger: logger
        )
        let history = ChangeHistory(feed: feed, catalog: historyCatalog, catalogForStatus: catalogForStatus)
        let metrics = Hosting::Metrics()
        let refusals = RefusalCounts()
        let servers = try RequestServers(
            .broker,
            address: configuration.requests,
            listener: configuration.listener,
            thread: thread,
            limits: limits,
            security: configuration.localSecurity,
            traffic: configuration.traffic,
            logger: logger,
            handler: GuardedHandler(
                ChangeBrokerHandler(
                    history: history,
                    configuration: configuration,
                    state: ServiceState(Self.name, methods: ChangeBrokerRequest.methods, metrics: metrics) {
                        (await feed.problems, await feed.token?.sequence ?? 0)
                    },
                    clock: .system
                ),
                access: ChangeBrokerRequest.access,
                table: access,
                refusals: refusals
            )
        )
        access.onAnswer { MessagingContext.shared.authenticator.decideSoon() }
        access.onChange { identities in
            servers.review(identities)
            MessagingContext.shared.authenticator.reviewSoon()
            for identity in identities {
                let permission = Permission(byte: access.cachedPermission(of: identity).value)
                guard permission.role != .unknown else { continue }
                let isVisible = (whole: permission.seesEverything, limited: permission.role == .limited)
                Task { await feed.removeObservers(of: identity, except: isVisible) }
            }
        }
        metrics.section("access") { refusals.metrics }
        metrics.section("feed") { await feed.metrics() }
        metrics.section("requests") { await servers.metrics() }
        metrics.section("publisher") { [local = publishers[0]] in await local.metrics() }
        if publishers.count > 1 {
            metrics.section("publisherTCP") { [remote = publishers[1]] in await remote.metrics() }
        }
        metrics.section("catalog") { await source.connectionMetrics() }
        metrics.section("history") { await historyCatalog.connectionMetrics() }
        metrics.section("questions") { await catalogForStatus.connectionMetrics() }
        self.requestsAddress = servers.address
        self.feedAddress = publishers[0].boundAddress
        self.addresses = servers.addresses + publishers.map(\.boundAddress.description)
        self.feed = feed
        self.access = access
        self.servers = servers
        self.threads = [thread, feedThread, catalogThread, historyThread]
        self.follower = RecordFollower(
            source: configuration.upstream == nil ? .catalog(source) : .broker(source),
            catalog: catalogForStatus,
            feed: feed,
            configuration: configuration
        )
        self.availability = AvailabilityFollower(
            catalog: historyCatalog,
            feed: feed,
            retryDelay: configuration.catalogRetryDelay
        )
        self.jobs = UploadJobFollower(catalog: historyCatalog, feed: feed, retryDelay: configuration.catalogRetryDelay)
        self.logger = logger
        self.leaseCheck = configuration.fetchLeaseCheck
        self.fetchUpdater = ObservedFetchUpdater(history: history, configuration: configuration)
    }

    /// The components in dependency order; they are stopped in reverse order.
    var components: [any Service] {
        [
            ClosingComponent("sockets") { [threads] in for thread in threads { await thread.shutdown() } },
            LoopComponent("head messages") { [feed] in await feed.publishHeads() },
            LoopComponent("leases") { [self] in await expireLeases() },
            LoopComponent("observed fetches") { [fetchUpdater] in await fetchUpdater.run() },
            LoopComponent("records") { [follower] in await follower.run() },
            LoopComponent("availability") { [availability] in await availability.run() },
            LoopComponent("jobs") { [jobs] in await jobs.run() },
        ] + servers.components + [
            // Stopped first, because active followers would delay the server's stop.
            ClosingComponent("followers") { [feed] in await feed.endFollowers() },
            ClosingComponent("access") { [access] in access.close() },
        ]
    }

    /// Ends observations whose lease has expired, until cancelled.
    private func expireLeases() async {
        for await _ in TaskDelay.ticks(every: leaseCheck) {
            await feed.expireFetches(now: MonotonicClock.system.nowMicroseconds())
        }
    }

    /// Runs until cancelled, without handling signals; for tests.
    func runUntilCancelled() async {
        await withTaskGroup { group in
            group.addTask { await feed.publishHeads() }
            group.addTask { await follower.run() }
            group.addTask { await availability.run() }
            group.addTask { await jobs.run() }
            group.addTask { await fetchUpdater.run() }
            group.addTask { await expireLeases() }
            group.addTask { await servers.run() }
            await group.waitForAll()
        }
        for thread in threads { await thread.shutdown() }
    }
}
