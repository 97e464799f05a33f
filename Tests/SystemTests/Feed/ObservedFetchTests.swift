import Contracts
import Foundation
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Observed fetches of a real catalog and a real broker, compared with fresh fetches at the same token.
///
/// The short form makes 200 transactions and 60 fetches; `SAFELIGHT_SOAK=50` makes 10,000 and 200, with each broker.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(3))))
struct ObservedFetchTests {
    private static let fetches = min(200, TestEnvironment.rounds(60))
    private static let transactions = min(20_000, TestEnvironment.rounds(200))

    /// A list kept current only by the messages of its topic.
    private struct LiveList {
        let fetch: FetchDescription
        var observation = ""
        var ids: [ObjectID] = []
        var token = ChangeToken.none
        var repaired = 0
    }

    @Test(
        .spec("S-63", "S-65", "S-67", "S-69", "P-03", "P-04", "P-05", "P-07", "P-08", "P-17", "P-19", "D6"),
        arguments: [false, true]
    )
    func `each observed result equals a fresh run of the same fetch, through random transactions`(
        ofChainedBroker isChained: Bool
    ) async throws {
        var random = SeededRandom(named: "live fetches")
        let services = try SafelightFixture("live")
        try services.generateLibrary(assets: 400, ["--albums", "6", "--seed", "\(random.seed % 1000)"])
        try services.start([.catalog, .changeBroker])
        let chained = isChained ? try ChainedBroker(services) : nil
        let library = try chained?.library() ?? services.library()
        var work = try await RandomWorkload(library)
        let feed = try Subscriber(
            address: chained.map { try EndpointAddress($0.feed) } ?? services.address("feed"),
            thread: try PollThread(name: "test-live"),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        await feed.subscribe([FeedTopic.head])
        var lists: [String: LiveList] = [:]
        while lists.count < Self.fetches {
            let fetch = work.fetch(&random)
            guard (try? Fetch(fetch)) != nil else { continue }
            var list = LiveList(fetch: fetch)
            (list.ids, list.token) = try await RandomWorkload.fresh(fetch, library)
            let observed = try await library.changeBroker.ask(FetchObserve(fetch: fetch, token: list.token)).result
            list.observation = observed.details.observation
            try Self.apply(observed.details, into: &list)
            await feed.subscribe([observed.topic])
            lists[observed.topic] = list
        }
        var messages = feed.messages.makeAsyncIterator()
        var clock = Spent()
        for number in 1...Self.transactions {
            let token = try await clock.time(\.performing) { try await work.perform(&random) }
            guard number % 100 == 0 || number == Self.transactions else { continue }
            // A head follows every message at or below it: from then on every list is current with the catalog.
            let reading = clock.start()
            while let message = await messages.next() {
                let json = try JSON(parsing: message.frames.first ?? [])
                if message.topic == FeedTopic.head {
                    if try FeedHead(json: json).sequence >= token.sequence { break }
                } else if var list = lists[message.topic] {
                    try await Self.apply(json, into: &list, library)
                    lists[message.topic] = list
                }
            }
            clock.stop(\.reading, reading)
            for (topic, list) in lists {
                let (expected, freshToken) = try await clock.time(\.fetching) {
                    try await RandomWorkload.fresh(list.fetch, library)
                }
                #expect(freshToken == token)
                guard list.ids == expected else {
                    Issue.record("after \(number), \(list.fetch.json.text): \(list.ids) differs from \(expected)")
                    return
                }
                // The details since a current list's token are empty and move the token.
                let whole = try await library.changeBroker.ask(
                    FetchDetails(observation: list.observation, token: list.token)
                ).result
                guard whole.details == nil, whole.token == token else {
                    Issue.record(
                        """
                        after \(number), \(topic), \(list.fetch.json.text): since \(list.token) \(list.ids) received \
                        \(whole.json.text), expected no details up to \(token)
                        """
                    )
                    return
                }
            }
        }
        let metrics = try await library.changeBroker.metrics()
        let live = metrics["feed"]?["fetches"]
        TestPaths.report(
            "fetches: \(live?["candidates"]?.intValue ?? 0) candidates, \(live?["messages"]?.intValue ?? 0) messages, "
                + "\(work.refused) refused; \(clock.text)"
        )
        #expect(live?["broken"] == 0)
        await feed.close()
        await library.close()
        if let chained { #expect(chained.stop() == 0) }
        #expect(services.stop() == [])
    }

    // MARK: Helpers

    /// The time that the parts of the test take.
    private struct Spent {
        var performing = Duration.zero
        var reading = Duration.zero
        var fetching = Duration.zero

        func start() -> ContinuousClock.Instant { .now }

        mutating func stop(_ part: WritableKeyPath<Spent, Duration>, _ start: ContinuousClock.Instant) {
            self[keyPath: part] += .now - start
        }

        mutating func time<Value>(
            _ part: WritableKeyPath<Spent, Duration>,
            _ work: () async throws -> Value
        ) async rethrows -> Value {
            let start = start()
            defer { stop(part, start) }
            return try await work()
        }

        var text: String { "performing \(performing), reading \(reading), fetching afresh \(fetching)" }
    }

    private static func apply(_ details: FetchDetailsResult, into list: inout LiveList) throws {
        list.token = details.token
        if let changes = details.details { list.ids = try changes.apply(to: list.ids) }
    }

    private static func apply(_ json: JSON, into list: inout LiveList, _ library: PhotoLibrary) async throws {
        let sequence = json["sequence"]?.intValue ?? 0
        guard sequence > list.token.sequence else { return }
        guard let previous = json["previous"]?.intValue, previous <= list.token.sequence, let details = json["details"]
        else {
            list.repaired += 1
            let request = FetchDetails(observation: list.observation, token: list.token)
            return try apply(try await library.changeBroker.ask(request).result, into: &list)
        }
        list.ids = try ChangeDetails(json: details).apply(to: list.ids)
        list.token = ChangeToken(library: list.token.library, sequence: sequence)
    }
}
