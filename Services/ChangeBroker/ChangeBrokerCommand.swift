import ArgumentParser
import Hosting
import Messaging

@main
struct ChangeBrokerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: ServiceName.changeBroker.rawValue,
        abstract: "Publishes the library's changes, live and from any point of its history.",
        discussion: """
            Follows the catalog, publishes each change on the feed and replays missed changes. It keeps \
            no durable state and may be stopped and started at any time.
            """,
        version: ServiceVersion.current
    )

    @OptionGroup var endpoints: EndpointOptions
    @OptionGroup var listening: ListenOptions
    @OptionGroup var service: ServiceOptions
    @OptionGroup var traffic: TrafficOptions

    @Option(
        help: ArgumentHelp(
            "Address of another change-broker to follow, in place of the catalog's records. (SAFELIGHT_UPSTREAM)",
            valueName: "address"
        )
    )
    var upstream: String?

    @Option(help: "Records kept in memory for replays; older ones come from the catalog.")
    var ringRecords = 100_000

    @Option(help: "Memory for these records, in MiB.")
    var ringMemory = 64

    @Option(help: "Maximum number of concurrent feed.follow readers.")
    var maxFollowers = 1000

    @Option(help: "Maximum number of observed fetches.")
    var maxFetches = 20_000

    @Option(help: "Maximum number of observed fetches per identity.")
    var maxFetchesPerIdentity = 10_000

    @Option(help: "Maximum number of objects in all observed results together; each takes about 50 bytes.")
    var maxFetchRows = 10_000_000

    @Option(help: "Maximum bytes of all observed results and their logs. (SAFELIGHT_MAX_FETCH_BYTES, else 640 MiB)")
    var maxFetchBytes: Int?

    @Option(help: "Maximum bytes of these logs alone. (SAFELIGHT_MAX_FETCH_LOG_BYTES, else 64 MiB)")
    var maxFetchLogBytes: Int?

    @Option(help: "Maximum topics of all subscribers of one endpoint together. (SAFELIGHT_MAX_TOPICS, else 100,000)")
    var maxTopics: Int?

    @Option(help: "Maximum topics of one connection. (SAFELIGHT_MAX_TOPICS_PER_CONNECTION, else 8,192)")
    var maxTopicsPerConnection: Int?

    @OptionGroup var check: CheckOptions

    func run() async throws {
        let logger = try service.logger(ServiceName.changeBroker.rawValue)
        var configuration = try resolved()
        configuration.listener = try listening.resolve(logger: logger)
        if check.isRequested { return print(try await configuration.settings.check(logger)) }
        try configuration.settings.warnAboutMemory(logger)
        configuration.traffic.enforce()
        let locks = try endpoints.resolve().claim(for: .changeBroker)
        let broker = try ChangeBrokerService(configuration, logger: logger)
        defer { withExtendedLifetime(locks) {} }
        try await broker.run(ready: service.ready)
    }

    private func resolved() throws -> ChangeBrokerConfiguration {
        let endpoints = try endpoints.resolve()
        var configuration = ChangeBrokerConfiguration(
            catalog: endpoints[.catalog],
            requests: endpoints[.broker],
            feed: endpoints[.feed]
        )
        if let text = upstream ?? Environment["SAFELIGHT_UPSTREAM"] {
            do throws(MessagingError) { configuration.upstream = try EndpointAddress(text) } catch {
                throw HostingError.badSetting(
                    source: upstream == nil ? "SAFELIGHT_UPSTREAM" : "--upstream",
                    reason: "\(error)"
                )
            }
        }
        configuration.remoteSecurity = endpoints.security
        configuration.catalogs = endpoints.all(.catalog)
        configuration.localSecurity = endpoints.localSecurity
        configuration.traffic = try traffic.resolve()
        configuration.ringRecords = ringRecords
        let (ringBytes, overflow) = ringMemory.multipliedReportingOverflow(by: 1 << 20)
        configuration.ringBytes = overflow ? .max : ringBytes
        configuration.maxFollowers = maxFollowers
        configuration.maxFetches = maxFetches
        configuration.maxFetchesPerIdentity = maxFetchesPerIdentity
        configuration.maxFetchRows = maxFetchRows
        typealias Variable = Hosting.Environment
        try Variable.set(&configuration.maxFetchBytes, maxFetchBytes, "SAFELIGHT_MAX_FETCH_BYTES")
        try Variable.set(&configuration.maxFetchLogBytes, maxFetchLogBytes, "SAFELIGHT_MAX_FETCH_LOG_BYTES")
        try Variable.set(&configuration.maxTopics, maxTopics, "SAFELIGHT_MAX_TOPICS")
        try Variable.set(
            &configuration.maxTopicsPerConnection,
            maxTopicsPerConnection,
            "SAFELIGHT_MAX_TOPICS_PER_CONNECTION"
        )
        try configuration.validate()
        return configuration
    }
}
