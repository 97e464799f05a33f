import Hosting
import JSONValue
import Messaging

/// The settings of a change-broker, with their bounds.
struct ChangeBrokerConfiguration: Sendable {
    /// The catalog's request endpoint.
    var catalog: EndpointAddress
    /// The endpoint that accepts requests.
    var requests: EndpointAddress
    /// The endpoint that publishes live messages.
    var feed: EndpointAddress
    /// The security of the connection to the catalog.
    var catalogSecurity = SocketSecurity.none
    /// The security of the request and feed endpoints.
    var localSecurity = SocketSecurity.none
    var traffic = TrafficLimits()
    /// The listener for clients on other machines; nil if only this machine may connect.
    var listener: NetworkListener?

    /// Records kept in memory for replays; older ones come from the catalog.
    var ringRecords = 100_000
    /// The memory for these records, in bytes.
    var ringBytes = 64 << 20
    /// The maximum size of a live message, in bytes; a larger one is truncated.
    var liveMessageBytes = 256 << 10
    /// Encoded bytes of records in one response of `feed.since`.
    var pageBytes = 4 << 20
    /// Encoded bytes of records in one notification of `feed.follow`.
    var followBytes = 256 << 10
    /// Records in one notification of `feed.follow`.
    var followRecords = 256
    /// The maximum number of concurrent `feed.follow` readers.
    var maxFollowers = 1000
    /// The maximum number of observed fetches, in total and per identity.
    var maxFetches = 20_000
    var maxFetchesPerIdentity = 10_000
    /// The maximum number of objects in all observed results together; with a date as sort key each takes about 50
    /// bytes.
    var maxFetchRows = 10_000_000
    /// Bytes of all of their results and logs together, about, and of the logs alone.
    var maxFetchBytes = 640 << 20
    var maxFetchLogBytes = 64 << 20
    /// Topics of all subscribers of one endpoint together, and of one connection.
    var maxTopics = 100_000
    var maxTopicsPerConnection = 8192
    /// How long an observation is kept that nobody asks about and nobody listens to, and how often that is looked at.
    var fetchLease: Duration = .seconds(600)
    var fetchLeaseCheck: Duration = .seconds(10)
    /// The interval of `head` messages, and the minimum time between two of them.
    var headInterval: Duration = .seconds(1)
    var headSpacing: Duration = .milliseconds(50)
    /// The delay before the catalog is contacted again.
    var catalogPause: Duration = .milliseconds(200)
    /// The byte credit for the catalog's stream of records.
    var catalogCredit = 8 << 20
    /// How often the catalog is asked for its oldest sequence.
    var catalogInterval: Duration = .seconds(30)

    init(catalog: EndpointAddress, requests: EndpointAddress, feed: EndpointAddress) {
        self.catalog = catalog
        self.requests = requests
        self.feed = feed
    }

    /// The invalid settings, described for the operator; empty if all are valid.
    var problems: [String] {
        var problems: [String] = []
        func check(_ isGood: Bool, _ problem: String) { if !isGood { problems.append(problem) } }
        check((1...10_000_000).contains(ringRecords), "the ring keeps 1 to 10,000,000 records")
        check((1 << 20...64 << 30).contains(ringBytes), "the ring has 1 MiB to 64 GiB of memory")
        check((1...100_000).contains(maxFollowers), "1 to 100,000 followers are served")
        check((1...1_000_000).contains(maxFetches), "1 to 1,000,000 fetches are observed")
        check((1...1_000_000).contains(maxFetchesPerIdentity), "one identity observes 1 to 1,000,000 fetches")
        check((1...1_000_000_000).contains(maxFetchRows), "observed results have 1 to 1,000,000,000 objects")
        check((1 << 20...1 << 40).contains(maxFetchBytes), "observed fetches have 1 MiB to 1 TiB of memory")
        check((0...1 << 40).contains(maxFetchLogBytes), "logs of observed fetches have 0 bytes to 1 TiB of memory")
        check((1...10_000_000).contains(maxTopics), "subscribers have 1 to 10,000,000 topics")
        check((1...10_000_000).contains(maxTopicsPerConnection), "one connection has 1 to 10,000,000 topics")
        check(Set([catalog, requests, feed]).count == 3, "catalog, requests and feed are three addresses")
        return problems
    }

    /// The settings in force, as `--check` prints them.
    var json: JSON {
        [
            "catalog": .string(catalog.description), "requests": .string(requests.description),
            "feed": .string(feed.description), "ringRecords": JSON(ringRecords), "ringBytes": JSON(ringBytes),
            "maxFollowers": JSON(maxFollowers), "maxFetches": JSON(maxFetches),
            "maxFetchesPerIdentity": JSON(maxFetchesPerIdentity), "maxFetchRows": JSON(maxFetchRows),
            "maxFetchBytes": JSON(maxFetchBytes), "maxFetchLogBytes": JSON(maxFetchLogBytes),
            "maxTopics": JSON(maxTopics), "maxTopicsPerConnection": JSON(maxTopicsPerConnection),
        ]
    }
}
