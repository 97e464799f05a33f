import ArgumentParser
import Hosting
import JSONValue

@main
struct ChangeBrokerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "change-broker",
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

    @Option(help: "Bytes of all observed results and their logs together. (SAFELIGHT_MAX_FETCH_BYTES, else 640 MiB)")
    var maxFetchBytes: Int?

    @Option(help: "Bytes of the logs of observed fetches, within those. (SAFELIGHT_MAX_FETCH_LOG_BYTES, else 64 MiB)")
    var maxFetchLogBytes: Int?

    @Option(help: "Topics of all subscribers of one endpoint together. (SAFELIGHT_MAX_TOPICS, else 100,000)")
    var maxTopics: Int?

    @Option(help: "Topics of one subscriber's connection. (SAFELIGHT_MAX_TOPICS_PER_CONNECTION, else 8,192)")
    var maxTopicsPerConnection: Int?

    @Flag(help: "Prints the settings in force and says what is wrong with them; serves nothing.")
    var check = false

    func run() async throws {
        let logger = try service.logger(ServiceName.changeBroker.rawValue)
        let endpoints = try endpoints.resolve()
        var configuration = try ChangeBrokerConfiguration(self, endpoints: endpoints)
        if check { return print(configuration.json.prettyText) }
        configuration.traffic.begin()
        configuration.listener = try listening.resolve(logger: logger)
        let locks = try endpoints.claim(for: .changeBroker)
        let broker = try ChangeBrokerService(configuration, logger: logger)
        defer { withExtendedLifetime(locks) {} }
        try await broker.run(ready: service.ready)
    }
}

extension ChangeBrokerConfiguration {
    /// Creates the configuration from the command line options.
    init(_ command: ChangeBrokerCommand, endpoints: Endpoints) throws {
        self.init(catalog: endpoints[.catalog], requests: endpoints[.broker], feed: endpoints[.feed])
        catalogSecurity = endpoints.security(of: .catalog)
        localSecurity = endpoints.localSecurity
        traffic = try command.traffic.resolve()
        ringRecords = command.ringRecords
        ringBytes = command.ringMemory.multipliedReportingOverflow(by: 1 << 20).partialValue
        maxFollowers = command.maxFollowers
        maxFetches = command.maxFetches
        maxFetchesPerIdentity = command.maxFetchesPerIdentity
        maxFetchRows = command.maxFetchRows
        try Self.set(&maxFetchBytes, command.maxFetchBytes, "SAFELIGHT_MAX_FETCH_BYTES")
        try Self.set(&maxFetchLogBytes, command.maxFetchLogBytes, "SAFELIGHT_MAX_FETCH_LOG_BYTES")
        try Self.set(&maxTopics, command.maxTopics, "SAFELIGHT_MAX_TOPICS")
        try Self.set(&maxTopicsPerConnection, command.maxTopicsPerConnection, "SAFELIGHT_MAX_TOPICS_PER_CONNECTION")
        if let problem = problems.first { throw ValidationError(problem) }
    }

    /// A setting by flag, then by variable, then its default.
    private static func set(_ value: inout Int, _ flag: Int?, _ variable: String) throws(HostingError) {
        if let flag { return value = flag }
        guard let text = Hosting.Environment[variable] else { return }
        guard let number = Int(text) else {
            throw .badSetting(source: variable, reason: "\(text) is no whole number")
        }
        value = number
    }
}
