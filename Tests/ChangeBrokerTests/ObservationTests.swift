import Messaging
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests of `fetch.observe`, `fetch.details` and `fetch.unobserve` of a real broker over a fake catalog.
@Suite(.timeLimit(.minutes(5)), .serialized)
struct ObservationTests: ObservationSteps {
    @Test(.spec("S-63", "S-65", "S-67", "S-68", "S-70", "P-03", "P-04"))
    func `live messages and details both turn an earlier list into the current one`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4, 3, 2, 1], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let start = await fixture.catalog.token
                    let observed = try await observe(best(limit: 3), fixture, since: start)
                    #expect(observed.details.details == nil && observed.details.token == start)
                    #expect(observed.details.count == 3)
                    #expect(observed.topic == "fetch.\(observed.details.observation)")
                    let live = try await fixture.subscriber([observed.topic])
                    await fixture.catalog.rate(9, 0)
                    await fixture.catalog.rate(5, 4)
                    await fixture.catalog.rate(9, 1)
                    await fixture.catalog.rate(1, nil)
                    let messages = try await live.changes(2)
                    #expect(messages.map { $0.json["sequence"]?.intValue } == [7, 9])
                    #expect(messages.map { $0.json["previous"]?.intValue } == [5, 7])
                    var list = ids(1, 2, 3)
                    for message in messages {
                        list = try ChangeDetails(json: try #require(message.json["details"])).apply(to: list)
                        #expect(list.count == 3)
                    }
                    #expect(list == ids(2, 5, 3))
                    // A client that missed both messages gets one response, in either form.
                    try await fixture.waitUntilCaughtUp()
                    let whole = try await details(observed, fixture, since: start, form: .rice)
                    #expect(whole.token.sequence == 9 && whole.from == start)
                    #expect(try whole.details?.apply(to: ids(1, 2, 3)) == list)
                    #expect(whole.rice?.removedIndexes == [0] && whole.rice?.insertedIndexes == [1])
                    // Unchanged since then: details are null, and the token has advanced.
                    let nothing = try await details(observed, fixture, since: whole.token)
                    #expect(nothing.details == nil && nothing.token == whole.token)
                }
            }
        }
    }

    @Test(.spec("S-24", "S-69"))
    func `a client that declines incremental details receives the list after the change`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let start = await fixture.catalog.token
                    let observed = try await observe(best(), fixture, since: start)
                    let same = try await details(observed, fixture, since: start, incremental: false)
                    #expect(same.details == nil)
                    await fixture.catalog.rate(3, 3)
                    let after = await fixture.catalog.token
                    try await fixture.waitUntilCaughtUp()
                    let changed = try await details(observed, fixture, since: start, incremental: false)
                    #expect(changed.details?.hasIncrementalChanges == false && changed.details?.isEmpty == true)
                    #expect(changed.ids == ids(1, 2, 3) && changed.token == after)
                    #expect(changed.rice == nil)
                }
            }
        }
    }

    @Test(.spec("S-64"))
    func `one fetch is maintained once for all its observers, and ends with the last of them`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker { broker in
                    try await fixture.waitUntilCaughtUp()
                    let first = try await observe(best(), fixture)
                    // The same fetch in another spelling has the same observation.
                    var other = best()
                    other.predicate = "rating >= 2 AND TRUEPREDICATE"
                    let second = try await observe(other, fixture)
                    #expect(first.details.observation == second.details.observation)
                    #expect(await fixture.catalog.keyRequests == 1)
                    let request = FetchUnobserve(observation: first.details.observation)
                    // Another connection does not observe the fetch and ends nothing.
                    try await fixture.withClient { client in
                        let error = await #expect(throws: RPCError.self) { try await client.ask(request) }
                        #expect(error?.errorCode == .handleExpired)
                        _ = try await client.ask(FetchObserve(fetch: best()))
                    }
                    _ = try await fixture.library.changeBroker.ask(request)
                    #expect(await broker.feed.observedFetches.count == 1, "the other connection observed it, too")
                    // The observations of a closed connection can be ended by the next connection of its identity.
                    while !Task.isCancelled {
                        do throws(RPCError) {
                            _ = try await fixture.library.changeBroker.ask(request)
                            break
                        } catch {
                            #expect(error.errorCode == .handleExpired)
                            await Task.yield()
                        }
                    }
                    #expect(await broker.feed.observedFetches.count == 0)
                    let error = await #expect(throws: RPCError.self) {
                        try await fixture.library.changeBroker.ask(request)
                    }
                    #expect(error?.errorCode == .handleExpired)
                    let unknown = await #expect(throws: RPCError.self) {
                        try await details(first, fixture, since: first.details.token)
                    }
                    #expect(unknown?.errorCode == .handleExpired)
                }
            }
        }
    }

    @Test(.spec("S-64"))
    func `after the last observer has ended, the topic carries no messages, even to a subscriber`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker { broker in
                    try await fixture.waitUntilCaughtUp()
                    let observed = try await observe(best(), fixture)
                    let live = try await fixture.subscriber([observed.topic, FeedTopic.changes])
                    await fixture.catalog.rate(2, 4)
                    #expect(Set(try await live.changes(2).map(\.topic)) == [observed.topic, FeedTopic.changes])
                    let request = FetchUnobserve(observation: observed.details.observation)
                    _ = try await fixture.library.changeBroker.ask(request)
                    #expect(await broker.feed.observedFetches.count == 0)
                    await fixture.catalog.rate(3, 4)
                    await fixture.catalog.rate(4, 4)
                    #expect(try await live.changes(2).map(\.topic) == [FeedTopic.changes, FeedTopic.changes])
                }
            }
        }
    }

    @Test func `fetches that differ in offset and limit share one result and its log`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4, 3, 2], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker { broker in
                    try await fixture.waitUntilCaughtUp()
                    let start = await fixture.catalog.token
                    let windows = [best(limit: 2), best(limit: 2, offset: 2), best()]
                    var observed: [FetchObserve.Result] = []
                    for window in windows { observed.append(try await observe(window, fixture, since: start)) }
                    #expect(Set(observed.map(\.topic)).count == 3)
                    #expect(await fixture.catalog.keyRequests == 1)
                    #expect(await broker.feed.observedFetches.rows == 4)
                    let before = [ids(1, 2), ids(3, 4), ids(1, 2, 3, 4)]
                    await fixture.catalog.rate(4, 5)
                    try await fixture.waitUntilCaughtUp()
                    for (index, expected) in [ids(1, 4), ids(2, 3), ids(1, 4, 2, 3)].enumerated() {
                        let changes = try await details(observed[index], fixture, since: start).details
                        #expect(try changes?.apply(to: before[index]) == expected)
                    }
                    // A later observer has the details since the start, too.
                    let late = try await observe(best(limit: 3), fixture, since: start)
                    #expect(try late.details.details?.apply(to: ids(1, 2, 3)) == ids(1, 4, 2))
                    // The result is removed with its last observation.
                    for result in observed + [late] {
                        #expect(await broker.feed.observedFetches.rows == 4)
                        let request = FetchUnobserve(observation: result.details.observation)
                        _ = try await fixture.library.changeBroker.ask(request)
                    }
                    #expect(await broker.feed.observedFetches.rows == 0)
                }
            }
        }
    }

    @Test func `an observation without subscribers and requests ends with its lease`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker { configuration in
                    configuration.fetchLease = .milliseconds(300)
                    configuration.fetchLeaseCheck = .milliseconds(20)
                } _: { broker in
                    try await fixture.waitUntilCaughtUp()
                    let observed = try await observe(best(), fixture)
                    while await broker.feed.observedFetches.count > 0 { try await Task.sleep(for: .milliseconds(10)) }
                    // Observing again gives the same identifier; a subscription keeps it.
                    let live = try await fixture.subscriber([observed.topic])
                    let again = try await observe(best(), fixture)
                    #expect(again.topic == observed.topic)
                    try await Task.sleep(for: .milliseconds(600))
                    #expect(await broker.feed.observedFetches.count == 1)
                    await live.close()
                    while await broker.feed.observedFetches.count > 0 { try await Task.sleep(for: .milliseconds(10)) }
                }
            }
        }
    }

    @Test func `the numbers of fetches, of fetches per identity and of rows are limited`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 5, 5], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker { configuration in
                    configuration.maxFetches = 4
                    configuration.maxFetchesPerIdentity = 2
                    configuration.maxFetchRows = 7
                } _: { broker in
                    try await fixture.waitUntilCaughtUp()
                    for limit in 1...2 { _ = try await observe(best(limit: limit), fixture) }
                    for limit in 3...9 {
                        let error = await #expect(throws: RPCError.self) {
                            try await observe(best(limit: limit), fixture)
                        }
                        #expect(error?.errorCode == .limitExceeded)
                    }
                    #expect(await broker.feed.observedFetches.rows <= 7)
                    // Existing observations continue.
                    let observed = try await observe(best(limit: 1), fixture)
                    #expect(observed.details.count == 1)
                }
            }
        }
    }

    @Test(.spec("P-30"))
    func `after a restart the observation has the same identifier, and older tokens still get details`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4, 3], in: fixture)
            try await fixture.withCatalog {
                let start = await fixture.catalog.token
                let before = try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    return try await observe(best(limit: 2), fixture, since: start)
                }
                await fixture.catalog.rate(3, 5)
                await fixture.catalog.rate(2, nil)
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let after = try await observe(best(limit: 2), fixture, since: start)
                    #expect(after.topic == before.topic && after.instance != before.instance)
                    #expect(try after.details.details?.apply(to: ids(1, 2)) == ids(1, 3))
                    let other = ChangeToken(library: otherLibrary, sequence: 1)
                    let error = await #expect(throws: RPCError.self) {
                        try await observe(best(limit: 2), fixture, since: other)
                    }
                    #expect(error?.errorCode == .tokenExpired)
                    // Details since a trimmed sequence cannot be computed.
                    await fixture.catalog.trim(upTo: 4)
                    let old = await #expect(throws: RPCError.self) {
                        try await observe(
                            best(limit: 1),
                            fixture,
                            since: ChangeToken(library: testLibrary, sequence: 1)
                        )
                    }
                    #expect(old?.errorCode == .tokenExpired)
                }
            }
        }
    }

    @Test(.spec("P-05"))
    func `a list is reported unchanged since any earlier token if all changes were beyond offset and limit`()
        async throws
    {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4, 2], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker({ $0.ringRecords = 20 }) { _ in
                    try await fixture.waitUntilCaughtUp()
                    let start = await fixture.catalog.token
                    let observed = try await observe(best(limit: 2), fixture, since: start)
                    func third(_ rating: Int) -> Asset {
                        var asset = Asset(id: assetID(3), revision: Revision(1))
                        asset.rating = rating
                        return asset
                    }
                    // More changes than the fetch's log holds; broker and catalog have trimmed their history.
                    for number in 0..<ObservedResult.maxLogged + 50 {
                        let rating = 2 + number % 2
                        await fixture.catalog.commit([EntityChange(before: third(rating), after: third(5 - rating))])
                    }
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.trim(upTo: await fixture.catalog.head)
                    let now = await fixture.catalog.token
                    let same = try await details(observed, fixture, since: start)
                    #expect(same.details == nil && same.token == now && same.count == 2)
                    // The next visible change is reported since then, because the log is complete again.
                    let before = same.token
                    await fixture.catalog.rate(2, nil)
                    try await fixture.waitUntilCaughtUp()
                    let changed = try await details(observed, fixture, since: before)
                    #expect(try changed.details?.apply(to: ids(1, 2)) == ids(1, 3))
                }
            }
        }
    }

    @Test func `a restored library ends every observation and announces a new instance`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4, 3], in: fixture)
            try await fixture.withBroker { broker in
                let observed = try await fixture.withCatalog {
                    try await fixture.waitUntilCaughtUp()
                    return try await observe(best(), fixture)
                }
                await fixture.catalog.restore(as: otherLibrary, keeping: 2)
                try await fixture.withCatalog {
                    try await fixture.waitUntilCaughtUp()
                    #expect(await broker.feed.observedFetches.count == 0)
                    #expect(await broker.feed.instance != observed.instance)
                    let again = try await observe(best(), fixture)
                    #expect(again.topic != observed.topic && again.details.count == 2)
                }
            }
        }
    }

    @Test func `an invalid fetch cannot be observed, and a request with a token above the head waits`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5], in: fixture)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    var wrong = best()
                    wrong.predicate = "weather == 'fine'"
                    let error = await #expect(throws: RPCError.self) { try await observe(wrong, fixture) }
                    #expect(error?.errorCode == .unsupportedPredicate)
                    let next = ChangeToken(library: testLibrary, sequence: 2)
                    async let late = observe(best(), fixture, since: next)
                    await fixture.catalog.rate(2, 4)
                    #expect(try await late.details.token.sequence == 2)
                    let future = FetchObserve(fetch: best(), token: ChangeToken(library: testLibrary, sequence: 99))
                    let behind = await #expect(throws: RPCError.self) {
                        try await fixture.library.changeBroker.ask(future, deadline: .milliseconds(800))
                    }
                    #expect(behind?.errorCode == .behind || behind?.errorCode == .deadlineExceeded)
                }
            }
        }
    }

    @Test func `details are refused if a connected catalog does not name its head, but not if it is disconnected`()
        async throws
    {
        try await BrokerFixture.with { fixture in
            await rateAssets([5], in: fixture)
            try await fixture.withBroker { _ in
                let observed = try await fixture.withCatalog {
                    try await fixture.waitUntilCaughtUp()
                    let observed = try await observe(best(), fixture)
                    await fixture.catalog.setBusy(true)
                    let error = await #expect(throws: RPCError.self) {
                        try await details(observed, fixture, since: observed.details.token)
                    }
                    #expect(error?.errorCode == .unavailable)
                    return observed
                }
                _ = try await fixture.waitUntilUnhealthy()
                #expect(try await details(observed, fixture, since: observed.details.token).count == 1)
            }
        }
    }

    @Test(.spec("S-63", "S-70"))
    func `the messages of its topic suffice to keep a window of a list current`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4, 3], in: fixture)
            let fetch = try Fetch(best(limit: 3, offset: 1))
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    var list: [ObjectID] = await fixture.catalog.list(fetch)
                    let observed = try await observe(fetch.wireForm, fixture, since: await fixture.catalog.token)
                    let live = try await fixture.subscriber([observed.topic])
                    for number in 0..<40 {
                        await fixture.catalog.rate(UInt64(number % 7 + 1), [nil, 2, 3, 5, 1][number % 5])
                    }
                    try await fixture.waitUntilCaughtUp()
                    var position = observed.details.token.sequence
                    while await fixture.catalog.list(fetch) != list {
                        let message = try #require(try await live.changes(1).first)
                        #expect(try #require(message.json["previous"]?.intValue) <= position)
                        position = message.json["sequence"]?.intValue ?? 0
                        list = try ChangeDetails(json: try #require(message.json["details"])).apply(to: list)
                    }
                    #expect(position <= 43)
                }
            }
        }
    }
}
