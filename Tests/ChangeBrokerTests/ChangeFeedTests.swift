import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Testing

@testable import ChangeBroker

/// Tests of the client's change stream against a real broker.
@Suite(.timeLimit(.minutes(5)), .serialized)
struct ChangeFeedTests {
    private func token(_ sequence: Int64) -> ChangeToken { ChangeToken(library: testLibrary, sequence: sequence) }

    /// Reads changes until a sequence was received.
    private func read(_ feed: ChangeFeed, until last: Int64) async throws -> [Int64] {
        var found: [Int64] = []
        for try await event in feed {
            if case .change(let record) = event { found.append(record.sequence) }
            if event.token.sequence >= last { break }
        }
        return found
    }

    @Test func `history and live changes form one stream without a gap`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 700)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    try await withThrowingTaskGroup { group in
                        group.addTask {
                            let found = try await read(fixture.library.changes(since: token(3)), until: 900)
                            #expect(found == (4...900).map { Int64($0) })
                        }
                        for _ in 0..<200 {
                            await fixture.catalog.commit()
                            await Task.yield()
                        }
                        try await group.waitForAll()
                    }
                }
            }
        }
    }

    @Test func `nothing is lost or delivered twice while broker and catalog restart`() async throws {
        try await BrokerFixture.with { fixture in
            let last: Int64 = 240
            let readers = [[], [FeedTopic.object(assetID(1))], [FeedTopic.object(assetID(1)), "edit.none"]]
            let reading = Task {
                try await withThrowingTaskGroup { group in
                    for topics in readers {
                        group.addTask {
                            let feed = fixture.library.changes(since: token(0), topics: topics)
                            let found = try await read(feed, until: last)
                            #expect(found == (1...last).map { $0 }, "\(topics)")
                        }
                    }
                    try await group.waitForAll()
                }
            }
            // The broker restarts while the catalog runs, then the catalog while the broker runs. Changes are committed
            // all the time, also while the broker is down.
            try await fixture.withCatalog {
                for _ in 0..<3 {
                    await fixture.catalog.commit(times: 20)
                    try await fixture.withBroker { _ in
                        await fixture.catalog.commit(times: 20)
                        try await fixture.waitUntilCaughtUp()
                    }
                }
            }
            try await fixture.withBroker { _ in
                for _ in 0..<3 {
                    await fixture.catalog.commit(times: 20)
                    try await fixture.withCatalog {
                        await fixture.catalog.commit(times: 20)
                        try await fixture.waitUntilCaughtUp()
                    }
                }
                try await fixture.withCatalog { try await reading.value }
            }
        }
    }

    @Test func `a reader whose queue is too small loses live messages but no change`() async throws {
        try await BrokerFixture.with { fixture in
            var limits = MessagingLimits()
            limits.inboxMessages = 2
            let thread = try PollThread(name: "test-slow")
            let feed = ChangeFeed(
                broker: fixture.library.changeBroker,
                feed: fixture.endpoints.feed,
                thread: thread,
                limits: limits,
                logger: BrokerFixture.logger,
                since: token(0)
            )
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    try await withThrowingTaskGroup { group in
                        group.addTask {
                            var found: [Int64] = []
                            for try await event in feed {
                                guard case .change(let record) = event else { continue }
                                found.append(record.sequence)
                                if record.sequence % 50 == 0 { try await Task.sleep(for: .milliseconds(20)) }
                                if record.sequence == 400 { break }
                            }
                            #expect(found == (1...400).map { Int64($0) })
                        }
                        for _ in 0..<400 {
                            await fixture.catalog.commit()
                            await Task.yield()
                        }
                        try await group.waitForAll()
                    }
                }
            }
            await thread.shutdown()
        }
    }

    @Test func `an expired token is reported with the position where the feed continues`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 10)
            await fixture.catalog.trim(upTo: 8)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    var events = fixture.library.changes(since: token(3)).makeAsyncIterator()
                    #expect(try await events.next() == .expired(head: token(10), oldest: token(8)))
                    let record = await fixture.catalog.commit()
                    #expect(try await events.next() == .change(record))
                }
            }
        }
    }

    @Test func `a restored library is another history, and the feed continues with it`() async throws {
        try await BrokerFixture.with { fixture in
            var events = fixture.library.changes(since: nil).makeAsyncIterator()
            let restored = ChangeToken(library: otherLibrary, sequence: 2)
            await fixture.catalog.commit(times: 5)
            let broker = try ChangeBrokerService(fixture.configuration, logger: BrokerFixture.logger)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await broker.runUntilCancelled() }
                try await fixture.withCatalog { try await fixture.waitUntilCaughtUp() }
                #expect(try await events.next() == .caughtUp(token(5)))
                await fixture.catalog.restore(as: otherLibrary, keeping: 2)
                let (cancelled, sink) = AsyncStream.makeStream(of: Void.self)
                group.addTask { try await fixture.withCatalog { for await _ in cancelled {} } }
                #expect(
                    try await events.next()
                        == .expired(head: restored, oldest: ChangeToken(library: otherLibrary, sequence: 0))
                )
                let record = await fixture.catalog.commit()
                #expect(try await events.next() == .change(record))
                group.cancelAll()
                while (try? await group.next()) != nil {}
                withExtendedLifetime(sink) {}
            }
        }
    }

    @Test func `a cancelled reader ends, and a reader with too many topics is refused`() async throws {
        try await BrokerFixture.with { fixture in
            await withTaskGroup { group in
                group.addTask {
                    var count = 0
                    do { for try await _ in fixture.library.changes(since: nil) { count += 1 } } catch { count = -1 }
                    #expect(count == 0)
                }
                group.cancelAll()
            }
            let topics = ["asset." + String(repeating: "x", count: 59)]
            var events = fixture.library.changes(since: nil, topics: topics).makeAsyncIterator()
            let error = await #expect(throws: RPCError.self) { try await events.next() }
            #expect(error?.errorCode == .limitExceeded)
        }
    }
}
