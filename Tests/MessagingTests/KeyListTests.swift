import JSONValue
import Testing

@testable import Messaging

/// Tests of lists of keys that change while connections are open.
@Suite(.timeLimit(.minutes(1)))
struct KeyListTests {
    @Test func `keys whose list was empty for a short time are served again, over open and new connections`()
        async throws
    {
        try await MessagingFixture.with { fixture in
            let curve = try CurveFixture()
            let (signals, subscriptions) = (NamedSignals(), Counter())
            let publisher = try Publisher(
                address: fixture.address(.tcp),
                thread: fixture.serverThread,
                security: curve.serving,
                logger: fixture.logger
            )
            publisher.setOnSubscribe { _, isSubscribed in
                guard isSubscribed else { return }
                subscriptions.add()
                signals.signal("\(subscriptions.count)")
            }
            let subscriber = try Subscriber(
                address: publisher.boundAddress,
                thread: fixture.clientThread,
                security: curve.client("ann"),
                logger: fixture.logger
            )
            await subscriber.subscribe(["news"])
            await signals.wait("1")
            let server = try RequestServer(
                address: fixture.address(.tcp),
                thread: fixture.serverThread,
                security: curve.serving,
                logger: fixture.logger,
                handler: EchoHandler()
            )
            let running = Task { await server.run() }
            defer { running.cancel() }
            let client = try RequestClient(
                address: server.boundAddress,
                thread: fixture.clientThread,
                security: curve.client("service"),
                logger: fixture.logger
            )
            _ = try await client.call("hello")
            let list = curve.removeList()
            while (try? await client.call("hello")) != nil { try await Task.sleep(for: .milliseconds(20)) }
            let refused = await #expect(throws: RPCError.self) { try await client.call("hello") }
            #expect(refused?.name == "access_denied")
            var events = subscriber.events.makeAsyncIterator()
            #expect(await events.next() == .connected)
            #expect(await events.next() == .disconnected)
            // The subscriber tries to connect again meanwhile.
            try await Task.sleep(for: .milliseconds(500))
            curve.restoreList(list)
            while (try? await client.call("hello")) == nil { try await Task.sleep(for: .milliseconds(20)) }
            #expect(await client.metrics()["connections"] == 1)
            await signals.wait("2")
            // The key is again that of a service.
            let identity = try #require(list.first { $0.value == "service" })
            let known = CurveIdentity(key: identity.key, name: identity.value)
            #expect(MessagingContext.shared.authenticator.isService(known, in: curve.domain))
        }
    }
}
