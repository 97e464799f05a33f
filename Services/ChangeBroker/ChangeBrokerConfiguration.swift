import Hosting
import JSONValue
import Messaging

/// Everything that can be set about a change-broker, with its bounds.
struct ChangeBrokerConfiguration: Sendable {
    /// Where the catalog answers.
    var catalog: EndpointAddress
    /// Where requests are answered.
    var requests: EndpointAddress
    /// Where live messages are published.
    var feed: EndpointAddress
    /// What protects the connection to the catalog.
    var catalogSecurity = SocketSecurity.none
    /// What protects the addresses of requests and the feed.
    var localSecurity = SocketSecurity.none
    var traffic = TrafficLimits()
    /// For clients on other machines; none: only this one's.
    var door: PublicDoor?

    /// Records kept in memory for replays; older ones come from the catalog.
    var ringRecords = 100_000
    /// Bytes of memory for them.
    var ringBytes = 64 << 20
    /// A larger live message is truncated.
    var liveMessageBytes = 256 << 10
    /// Encoded bytes of records in one answer of `feed.since`.
    var pageBytes = 4 << 20
    /// Encoded bytes of records in one notification of `feed.follow`.
    var followBytes = 256 << 10
    /// Records in one notification of `feed.follow`.
    var followRecords = 256
    /// Readers that `feed.follow` serves at a time.
    var maxFollowers = 1000
    /// Fetches that are observed at a time, by all and by one identity.
    var maxFetches = 20_000
    var maxFetchesPerIdentity = 10_000
    /// Objects that all of their results have together; with a date to sort by each takes some 50 bytes.
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
    /// How often `head` is published, and how long after one head the next may follow.
    var headInterval: Duration = .seconds(1)
    var headSpacing: Duration = .milliseconds(50)
    /// The pause before the catalog is tried again.
    var catalogPause: Duration = .milliseconds(200)
    /// Byte credit for the catalog's stream of records.
    var catalogCredit = 8 << 20
    /// How often the catalog is asked how far back its history reaches.
    var catalogInterval: Duration = .seconds(30)

    init(catalog: EndpointAddress, requests: EndpointAddress, feed: EndpointAddress) {
        self.catalog = catalog
        self.requests = requests
        self.feed = feed
    }

    /// What cannot work, in words for the person who set it.
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

    /// What is in force, as `--check` prints it.
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
