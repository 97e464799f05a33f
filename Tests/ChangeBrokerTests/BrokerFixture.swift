import Contracts
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// A fake catalog and a real broker, each of which can be stopped for a while.
struct BrokerFixture: Sendable {
    let fixture: ClientFixture
    let catalog = FakeCatalog()
    /// Receives the broker's head messages.
    private let heads: Subscriber
    static let logger = ClientFixture.logger

    var folder: TemporaryFolder { fixture.folder }
    var endpoints: ServiceEndpoints { fixture.endpoints }
    var library: PhotoLibrary { fixture.library }

    static func with(_ body: (BrokerFixture) async throws -> Void) async throws {
        try await ClientFixture.with { fixture in
            let heads = try Subscriber(
                address: fixture.endpoints.feed,
                thread: try PollThread(name: "test-heads"),
                limits: ClientFixture.limits,
                logger: logger
            )
            await heads.subscribe([FeedTopic.head])
            try await body(BrokerFixture(fixture: fixture, heads: heads))
        }
    }

    var configuration: ChangeBrokerConfiguration {
        var configuration = ChangeBrokerConfiguration(
            catalog: endpoints.catalog,
            requests: endpoints.changeBroker,
            feed: endpoints.feed
        )
        configuration.headInterval = .milliseconds(200)
        configuration.headSpacing = .milliseconds(10)
        configuration.catalogRetryDelay = .milliseconds(50)
        return configuration
    }

    /// Runs the catalog during the body.
    func withCatalog<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
        try await fixture.serving(endpoints.catalog, FakeCatalogHandler(catalog: catalog), while: body)
    }

    /// Runs the broker during the body.
    func withBroker<Value: Sendable>(
        _ change: @Sendable (inout ChangeBrokerConfiguration) -> Void = { _ in },
        _ body: @Sendable (ChangeBrokerService) async throws -> Value
    ) async throws -> Value {
        var configuration = configuration
        change(&configuration)
        let broker = try ChangeBrokerService(configuration, logger: Self.logger)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await broker.runUntilCancelled() }
            let result: Result<Value, any Error>
            do { result = .success(try await body(broker)) } catch { result = .failure(error) }
            await broker.feed.endFollowers()
            group.cancelAll()
            return try result.get()
        }
    }

    /// Runs a body with another connection of the same identity.
    func withClient<Value: Sendable>(_ body: (ServiceClient) async throws -> Value) async throws -> Value {
        let thread = try PollThread(name: "test-client")
        let client = try ServiceClient(
            address: endpoints.changeBroker,
            thread: thread,
            limits: ClientFixture.limits,
            logger: Self.logger
        )
        let result: Result<Value, any Error>
        do { result = .success(try await body(client)) } catch { result = .failure(error) }
        await client.close()
        await thread.shutdown()
        return try result.get()
    }

    /// Waits until the broker has published all records committed so far.
    func waitUntilCaughtUp() async throws {
        let committed = await catalog.token
        while let head = try await heads.head() { if head.token == committed { return } }
    }

    /// Waits until the broker has detected that the catalog is unreachable, and returns its health.
    func waitUntilUnhealthy() async throws -> Health.Result {
        while true {
            let health = try await library.changeBroker.health(deadline: .seconds(30))
            if !health.isHealthy { return health }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Returns a subscriber without the client's logic, after its subscriptions have arrived.
    func subscriber(_ topics: [String]) async throws -> Subscriber {
        let subscriber = try Subscriber(
            address: endpoints.feed,
            thread: try PollThread(name: "test"),
            logger: Self.logger
        )
        await subscriber.subscribe(topics)
        await subscriber.subscribe([FeedTopic.head])
        // A new subscriber of head receives one at once.
        _ = try await subscriber.head()
        return subscriber
    }
}

extension Subscriber {
    /// Returns the next messages that are not heads.
    nonisolated func changes(_ count: Int) async throws -> [(topic: String, json: JSON)] {
        var found: [(String, JSON)] = []
        var messages = messages.makeAsyncIterator()
        while found.count < count, let message = await messages.next() {
            if message.topic == FeedTopic.head { continue }
            found.append((message.topic, try JSON(parsing: message.frames.first ?? [])))
        }
        return found
    }

    /// Returns the next head.
    nonisolated func head() async throws -> FeedHead? {
        var messages = messages.makeAsyncIterator()
        while let message = await messages.next() {
            if message.topic == FeedTopic.head {
                return try FeedHead(json: try JSON(parsing: message.frames.first ?? []))
            }
        }
        return nil
    }
}
