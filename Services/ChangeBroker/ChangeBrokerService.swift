import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import ServiceLifecycle

/// The change-broker, wired: the one place where its parts meet. The command and the tests make it alike.
struct ChangeBrokerService: Sendable {
    /// Where requests are answered, with the port that was found.
    let requestsAddress: EndpointAddress
    /// Where live messages are published.
    let feedAddress: EndpointAddress

    let feed: RecordFeed
    private let server: RequestServer
    private let publisher: Publisher
    private let thread: PollThread
    private let follower: CatalogFollower
    private let logger: Logger

    /// Binds both addresses; nothing runs yet.
    ///
    /// - Throws: ``MessagingError`` where an address cannot be used
    init(_ configuration: ChangeBrokerConfiguration, logger: Logger) throws {
        let thread = PollThread(name: "broker")
        var limits = MessagingLimits()
        // Everything here can be asked again: readers need not be waited for.
        limits.drainTimeout = .seconds(2)
        // The catalog is on this machine or near it, and everybody waits for its return.
        limits.reconnectIntervalMax = configuration.catalogPause
        let catalog = try ServiceClient(address: configuration.catalog, thread: thread, limits: limits, logger: logger)
        let publisher = try Publisher(address: configuration.feed, thread: thread, limits: limits, logger: logger)
        let feed = RecordFeed(
            configuration,
            publisher: publisher,
            instance: PhotoLibrary.randomTransaction(),
            logger: logger
        )
        let figures = Hosting::Figures()
        let server = try RequestServer(
            address: configuration.requests,
            thread: thread,
            limits: limits,
            logger: logger,
            handler: ChangeBrokerHandler(
                history: History(feed: feed, catalog: catalog),
                configuration: configuration,
                version: ServiceVersion.current,
                clock: .system,
                figures: { await figures.json() }
            )
        )
        figures.section("feed") { await feed.figures() }
        figures.section("requests") { [weak server] in await server?.figures() ?? [:] }
        figures.section("publisher") { [weak publisher] in await publisher?.figures() ?? [:] }
        figures.section("catalog") { await catalog.connectionFigures() }
        self.requestsAddress = server.boundAddress
        self.feedAddress = publisher.boundAddress
        self.feed = feed
        self.server = server
        self.publisher = publisher
        self.thread = thread
        self.follower = CatalogFollower(catalog: catalog, feed: feed, configuration: configuration, logger: logger)
        self.logger = logger
    }

    /// Runs until a signal.
    func run(ready: ReadySignal) async throws {
        try await ServiceHost.run(
            name: .changeBroker,
            logger: logger,
            endpoints: [requestsAddress.description, feedAddress.description],
            ready: ready,
            parts: [
                ClosingPart("sockets") { [thread] in await thread.shutdown() },
                LoopPart("head messages") { [feed] in await feed.publishHeads() },
                LoopPart("the catalog's records") { [follower] in await follower.run() },
                RequestServerPart(server),
                // Stopped first: followers would keep the server waiting.
                ClosingPart("followers") { [feed] in await feed.dismissFollowers() },
            ]
        )
    }

    /// Runs until cancelled, without signals: for tests.
    func runUntilCancelled() async {
        await withTaskGroup { group in
            group.addTask { await feed.publishHeads() }
            group.addTask { await follower.run() }
            group.addTask { await server.run() }
            await group.waitForAll()
        }
        await thread.shutdown()
    }
}
