import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Testing

@testable import ChangeBroker

/// Tests of `feed.since` and `feed.follow` against a real broker and a fake catalog.
@Suite(.timeLimit(.minutes(5)), .serialized)
struct HistoryTests {
    private func token(_ sequence: Int64) -> ChangeToken { ChangeToken(library: testLibrary, sequence: sequence) }

    private func sequences(_ records: [JSON]) -> [Int64] { records.compactMap { $0["sequence"]?.intValue } }

    @Test func `history comes from the ring if it reaches back far enough, else from the catalog`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 10)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.commit(times: 5)
                    try await fixture.waitUntilCaughtUp()
                    let broker = fixture.library.changeBroker
                    let requestsBefore = await fixture.catalog.pageRequests
                    var page = try await broker.ask(FeedSince(token: token(12))).result
                    #expect(sequences(page.records) == [13, 14, 15])
                    #expect(page.token == token(15))
                    #expect(page.head == token(15))
                    #expect(await fixture.catalog.pageRequests == requestsBefore)
                    page = try await broker.ask(FeedSince(token: token(4), limit: 3)).result
                    #expect(sequences(page.records) == [5, 6, 7])
                    #expect(page.token == token(7))
                    #expect(page.hasMore)
                    page = try await broker.ask(FeedSince(token: nil)).result
                    #expect(sequences(page.records) == (1...15).map { $0 })
                    #expect(await fixture.catalog.pageRequests == requestsBefore + 2)
                }
            }
        }
    }

    @Test func `a page waits 250 ms for the ring to reach its token, and then comes from the catalog`() async throws {
        #expect(ChangeHistory.maxWait == .milliseconds(250))
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let broker = fixture.library.changeBroker
                    await fixture.catalog.commit(times: 3)
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.setWithholding(true)
                    await fixture.catalog.commit()
                    let requestsBefore = await fixture.catalog.pageRequests
                    let start = ContinuousClock.now
                    let page = try await broker.ask(FeedSince(token: token(4))).result
                    let time = ContinuousClock.now - start
                    #expect(page.token == token(4) && page.records.isEmpty)
                    #expect(await fixture.catalog.pageRequests == requestsBefore + 1)
                    // Without the wait the request would take a millisecond, without its limit until the deadline.
                    #expect(time >= ChangeHistory.maxWait && time < .seconds(20))
                    await fixture.catalog.setWithholding(false)
                    try await fixture.waitUntilCaughtUp()
                    #expect(try await broker.ask(FeedSince(token: token(3))).result.records.count == 1)
                    #expect(await fixture.catalog.pageRequests == requestsBefore + 1)
                }
            }
        }
    }

    @Test func `a page without matching records advances the token`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.commit(times: 9)
                    try await fixture.waitUntilCaughtUp()
                    let request = FeedSince(token: token(0), topics: ["asset.\(assetID(5))"])
                    let page = try await fixture.library.changeBroker.ask(request).result
                    #expect(page.records.isEmpty)
                    #expect(page.token == token(9))
                }
            }
        }
    }

    @Test func `tokens before the history and above its head are refused with the catalog's errors`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 10)
            await fixture.catalog.trim(upTo: 6)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    for sequence: Int64 in [2, .max] {
                        let error = await #expect(throws: RPCError.self) {
                            try await fixture.library.changeBroker.ask(FeedSince(token: token(sequence)))
                        }
                        #expect(error?.errorCode == .tokenExpired)
                        #expect(error?.data["oldest"]?.stringValue == "\(token(6))")
                    }
                    let page = try await fixture.library.changeBroker.ask(FeedSince(token: nil)).result
                    #expect(sequences(page.records) == [7, 8, 9, 10])
                    #expect(try await fixture.library.changeBroker.ask(FeedHeadRequest()).result.oldest == 6)
                }
            }
        }
    }

    @Test func `older history is unavailable without the catalog, and the ring still answers`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 3)
            try await fixture.withBroker { _ in
                try await fixture.withCatalog {
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.commit(times: 3)
                    try await fixture.waitUntilCaughtUp()
                }
                let page = try await fixture.library.changeBroker.ask(FeedSince(token: token(4))).result
                #expect(sequences(page.records) == [5, 6])
                let error = await #expect(throws: RPCError.self) {
                    try await fixture.library.changeBroker.ask(FeedSince(token: token(1)), deadline: .milliseconds(200))
                }
                #expect(error?.isTransient == true)
            }
        }
    }

    // MARK: Following

    /// Reads the records and progress notifications of a stream until a sequence was received.
    private func read(
        _ stream: ServiceStream<FeedFollow>,
        until last: Int64
    ) async throws -> (sequences: [Int64], progress: [Int64]) {
        var (found, progress): ([Int64], [Int64]) = ([], [])
        for try await event in stream {
            guard case .notification(let method, let params, _) = event else { break }
            let token = try #require(params["token"]?.stringValue.flatMap { ChangeToken($0) })
            if method == FeedFollow.notification {
                found += sequences(params["records"]?.arrayValue ?? [])
            } else {
                progress.append(token.sequence)
            }
            if token.sequence >= last { break }
        }
        return (found, progress)
    }

    @Test func `a follower gets history and then each new record, from the ring or from the catalog`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 500)
            try await fixture.withCatalog {
                try await fixture.withBroker {
                    $0.followRecords = 50
                } _: { _ in
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.commit(times: 100)
                    let broker = fixture.library.changeBroker
                    let stream = broker.stream(FeedFollow(token: token(17)), credit: 100_000)
                    try await withThrowingTaskGroup { group in
                        group.addTask {
                            let received = try await read(stream, until: 650)
                            #expect(received.sequences == (18...650).map { Int64($0) })
                        }
                        for _ in 0..<50 { await fixture.catalog.commit() }
                        try await group.waitForAll()
                    }
                }
            }
        }
    }

    @Test func `a follower without a token begins at the head and receives its token`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 7)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    var events = fixture.library.changeBroker.stream(FeedFollow(token: nil), credit: 100_000)
                        .makeAsyncIterator()
                    guard case .notification(FeedFollow.progress, let params, _) = try await events.next() else {
                        Issue.record("no progress")
                        return
                    }
                    #expect(params["token"]?.stringValue == "\(token(7))")
                    await fixture.catalog.commit()
                    guard case .notification(FeedFollow.notification, let next, _) = try await events.next() else {
                        Issue.record("no records")
                        return
                    }
                    #expect(sequences(next["records"]?.arrayValue ?? []) == [8])
                }
            }
        }
    }

    @Test func `a filtered follower receives progress if nothing matches`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.commit(times: 30)
                    let request = FeedFollow(token: token(0), topics: ["asset.\(assetID(4))"])
                    let received = try await read(
                        fixture.library.changeBroker.stream(request, credit: 100_000),
                        until: 30
                    )
                    #expect(received.sequences == [])
                    #expect(received.progress == [30])
                }
            }
        }
    }

    @Test func `a follower without credit receives nothing until it sends credit`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker {
                    $0.followRecords = 1
                } _: { broker in
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.commit(times: 200)
                    try await fixture.waitUntilCaughtUp()
                    // Credit for a few records; reading returns it.
                    var events = fixture.library.changeBroker.stream(FeedFollow(token: token(0)), credit: 2000)
                        .makeAsyncIterator()
                    var received: [Int64] = []
                    for _ in 0..<3 {
                        guard case .notification(_, let params, _) = try await events.next() else { return }
                        received += sequences(params["records"]?.arrayValue ?? [])
                    }
                    // While the reader pauses, the cursor stays near its position, however many records are committed.
                    await fixture.catalog.commit(times: 200)
                    try await fixture.waitUntilCaughtUp()
                    let lags = await broker.feed.metrics()["followers"]?["lags"]?.arrayValue
                    #expect(lags?.count == 1)
                    let lag = lags?.first?["lag"]?.intValue ?? 0
                    #expect(lag > 380)
                    let behind = await fixture.catalog.records.suffix(Int(lag)).reduce(0) { $0 + $1.bytes.count }
                    #expect(lags?.first?["lagBytes"]?.intValue == Int64(behind))
                    while received.last != 400 {
                        guard case .notification(_, let params, _) = try await events.next() else { return }
                        received += sequences(params["records"]?.arrayValue ?? [])
                    }
                    #expect(received == (1...400).map { Int64($0) })
                }
            }
        }
    }

    @Test func `a follower that reads slowly delays no other reader and loses nothing`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker { configuration in
                    configuration.ringRecords = 20
                    configuration.followRecords = 5
                } _: { _ in
                    try await fixture.waitUntilCaughtUp()
                    let broker = fixture.library.changeBroker
                    let slow = broker.stream(FeedFollow(token: token(0)), credit: 1000)
                    let quick = broker.stream(FeedFollow(token: token(0)), credit: 1 << 20)
                    try await withThrowingTaskGroup { group in
                        group.addTask {
                            var received: [Int64] = []
                            for try await event in slow {
                                guard case .notification(_, let params, _) = event else { break }
                                received += sequences(params["records"]?.arrayValue ?? [])
                                try await Task.sleep(for: .milliseconds(2))
                                if received.last == 300 { break }
                            }
                            #expect(received == (1...300).map { Int64($0) })
                        }
                        group.addTask {
                            let received = try await read(quick, until: 300)
                            #expect(received.sequences == (1...300).map { Int64($0) })
                        }
                        for _ in 0..<300 { await fixture.catalog.commit() }
                        try await group.waitForAll()
                    }
                }
            }
        }
    }

    @Test func `the number of followers is limited, and a socket without notifications is refused`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit()
            try await fixture.withCatalog {
                try await fixture.withBroker {
                    $0.maxFollowers = 1
                } _: { _ in
                    try await fixture.waitUntilCaughtUp()
                    let broker = fixture.library.changeBroker
                    var first = broker.stream(FeedFollow(token: token(0)), credit: 1000).makeAsyncIterator()
                    _ = try await first.next()
                    let error = await #expect(throws: RPCError.self) {
                        var second = broker.stream(FeedFollow(token: token(0)), credit: 1000).makeAsyncIterator()
                        _ = try await second.next()
                    }
                    #expect(error?.errorCode == .limitExceeded)
                    let refused = await #expect(throws: RPCError.self) {
                        try await broker.ask(FeedFollow(token: token(0)))
                    }
                    #expect(refused?.errorCode == .invalidParams)
                }
            }
        }
    }

    @Test func `one identity may have half of the readers, without requests that wait for the feed`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withBroker {
                $0.maxFollowers = 4
            } _: { broker in
                let feed = broker.feed
                for _ in 0..<9 { _ = try await feed.addFollower("uid:1") }
                for identity in ["uid:1", "uid:1", "uid:2"] { _ = try await feed.addFollower(identity, at: token(0)) }
                let own = await #expect(throws: RPCError.self) { try await feed.addFollower("uid:1", at: token(0)) }
                #expect(own?.errorCode == .limitExceeded && own?.data["limit"] == 2)
                _ = try await feed.addFollower("uid:2", at: token(0))
                let all = await #expect(throws: RPCError.self) { try await feed.addFollower("uid:3", at: token(0)) }
                #expect(all?.errorCode == .limitExceeded && all?.data["limit"] == 4)
                _ = try await feed.addFollower("uid:1")
            }
        }
    }

    @Test func `the broker describes its methods and reports its metrics`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 4)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let broker = fixture.library.changeBroker
                    let document = try await broker.ask(Discover()).result.members
                    let methods = document["methods"]?.arrayValue?.compactMap { $0["name"]?.stringValue }
                    #expect(
                        methods == [
                            "feed.follow", "feed.head", "feed.since", "fetch.details", "fetch.observe",
                            "fetch.unobserve", "figures", "health", "rpc.cancel", "rpc.credit", "rpc.discover",
                        ]
                    )
                    await fixture.catalog.commit(times: 2)
                    try await fixture.waitUntilCaughtUp()
                    let metrics = try await broker.metrics()
                    #expect(metrics["feed"]?["head"] == 6)
                    #expect(metrics["feed"]?["ring"]?["floor"] == 4)
                    #expect(metrics["feed"]?["ring"]?["records"] == 2)
                    #expect(metrics["feed"]?["live"]?["records"] == 2)
                    let error = await #expect(throws: RPCError.self) { try await broker.ask(CurrentToken()) }
                    #expect(error?.errorCode == .methodNotFound)
                }
            }
        }
    }
}
