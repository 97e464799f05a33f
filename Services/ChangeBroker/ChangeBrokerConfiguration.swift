import Hosting
import JSONValue
import Messaging

/// The settings of a change-broker, with their bounds.
struct ChangeBrokerConfiguration: Sendable {
    /// The catalog's request endpoint; one for each of several catalogs of the library, at least one.
    var catalogs: [EndpointAddress]
    /// The endpoint that accepts requests.
    var requests: EndpointAddress
    /// The endpoint that publishes live messages.
    var feed: EndpointAddress
    /// The request endpoint of another change-broker that is followed in place of the catalog's records; nil for none.
    var upstream: EndpointAddress?
    /// The security of connections to other machines.
    var remoteSecurity = SocketSecurity.none
    /// The security of the request and feed endpoints.
    var localSecurity = SocketSecurity.none
    var traffic = TrafficLimits()
    /// The listener for clients on other machines; nil if only this machine may connect.
    var listener: NetworkListener?

    /// The number of records in memory for replays; older ones come from the catalog.
    var ringRecords = 100_000
    /// The memory for these records, in bytes.
    var ringBytes = 64 << 20
    /// The maximum size of a live message, in bytes; a larger one is truncated.
    var liveMessageBytes = 256 << 10
    /// The maximum size of the records in one response of `feed.since`, in bytes.
    var pageBytes = 4 << 20
    /// The maximum size of the records in one notification of `feed.follow`, in bytes.
    var followBytes = 256 << 10
    /// The maximum number of records in one notification of `feed.follow`.
    var followRecords = 256
    /// The maximum number of concurrent `feed.follow` readers.
    var maxFollowers = 1000
    /// The maximum number of observed fetches, in total and per identity.
    var maxFetches = 20_000
    var maxFetchesPerIdentity = 10_000
    /// The maximum number of objects in all observed results together; with a date as sort key each takes about 50
    /// bytes.
    var maxFetchRows = 10_000_000
    /// The maximum approximate memory of all results and logs together, and of the logs alone, in bytes.
    var maxFetchBytes = 640 << 20
    var maxFetchLogBytes = 64 << 20
    /// The maximum time that the long evaluations of the fetches of one identity may take at once; a tenth of the
    /// elapsed time is restored. Beyond it their observations are ended.
    var maxEvaluationTime: Duration = .seconds(10)
    /// The maximum number of topics of all subscribers of one endpoint together, and of one connection.
    var maxTopics = 100_000
    var maxTopicsPerConnection = 8192
    /// The time after which an observation without requests and subscribers ends, and the interval of the check.
    var fetchLease: Duration = .seconds(600)
    var fetchLeaseCheck: Duration = .seconds(10)
    /// The interval of `head` messages, and the minimum time between two of them.
    var headInterval: Duration = .seconds(1)
    var headSpacing: Duration = .milliseconds(50)
    /// The delay before the catalog is contacted again.
    var catalogRetryDelay: Duration = .milliseconds(200)
    /// The byte credit for the catalog's stream of records.
    var catalogCredit = 8 << 20
    /// The interval at which the catalog is asked for its oldest sequence.
    var catalogInterval: Duration = .seconds(30)

    init(catalog: EndpointAddress, requests: EndpointAddress, feed: EndpointAddress) {
        catalogs = [catalog]
        self.requests = requests
        self.feed = feed
    }

    func security(of address: EndpointAddress) -> SocketSecurity {
        address.transport == .tcp ? remoteSecurity : .none
    }

    /// The settings for `--check`.
    var settings: ServiceSettings {
        ServiceSettings(
            .changeBroker,
            endpoints: [(.broker, requests), (.feed, feed), (.catalog, catalogs[0])],
            limits: [
                "ringRecords": JSON(ringRecords), "maxFollowers": JSON(maxFollowers), "maxFetches": JSON(maxFetches),
                "maxFetchesPerIdentity": JSON(maxFetchesPerIdentity), "maxFetchRows": JSON(maxFetchRows),
                "maxTopics": JSON(maxTopics), "maxTopicsPerConnection": JSON(maxTopicsPerConnection),
            ],
            memory: ["ringBytes": JSON(ringBytes), "maxFetchBytes": JSON(maxFetchBytes)],
            partsOfMemory: ["maxFetchLogBytes": JSON(maxFetchLogBytes)],
            traffic: traffic,
            listener: listener
        )
    }

    /// Checks the ranges of all settings.
    ///
    /// - Throws: ``HostingError/badSetting(source:reason:)`` naming the flag
    func validate() throws(HostingError) {
        func require(_ value: Int, _ range: ClosedRange<Int>, _ flag: String) throws(HostingError) {
            try HostingError.require(
                range.contains(value),
                flag,
                "\(value) is not a number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        try require(ringRecords, 1...10_000_000, "--ring-records")
        try HostingError.require((1 << 20...64 << 30).contains(ringBytes), "--ring-memory", "must be 1 to 65536 MiB")
        try require(maxFollowers, 1...100_000, "--max-followers")
        try require(maxFetches, 1...1_000_000, "--max-fetches")
        try require(maxFetchesPerIdentity, 1...1_000_000, "--max-fetches-per-identity")
        try require(maxFetchRows, 1...1_000_000_000, "--max-fetch-rows")
        try require(maxFetchBytes, 1 << 20...1 << 40, "--max-fetch-bytes")
        try require(maxFetchLogBytes, 0...1 << 40, "--max-fetch-log-bytes")
        try require(maxTopics, 1...10_000_000, "--max-topics")
        try require(maxTopicsPerConnection, 1...10_000_000, "--max-topics-per-connection")
        try HostingError.require(
            Set(catalogs + [requests, feed]).count == catalogs.count + 2,
            "--feed",
            "catalog, change-broker and feed need three different addresses"
        )
        try HostingError.require(
            upstream.map { !(catalogs + [requests, feed]).contains($0) } ?? true,
            "--upstream",
            "must be the address of another change-broker; it is one of this one's own addresses (--broker, --feed) or "
                + "that of the catalog"
        )
    }
}
