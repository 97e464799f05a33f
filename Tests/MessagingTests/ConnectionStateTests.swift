import JSONValue
import TestSupport
import Testing

@testable import Messaging

/// The state of a client's connection, and requests that do not wait for one.
@Suite(.timeLimit(.minutes(1)))
struct ConnectionStateTests {
    private func error(_ body: () async throws(RPCError) -> Reply) async -> RPCError? {
        do throws(RPCError) {
            _ = try await body()
            return nil
        } catch {
            return error
        }
    }

    @Test func `the time without a connection is known, and a waiting task is resumed by one`() async {
        let clock = ManualClock()
        let state = ConnectionState(isReady: false, clock: clock.clock)
        clock.advance(milliseconds: 70)
        #expect(!state.isReady && state.absence == .milliseconds(70))
        async let ready: Void = state.waitUntilUsable()
        state.set(isReady: true)
        await ready
        #expect(state.isReady && state.absence == .zero)
        await state.waitUntilUsable()
        clock.advance(milliseconds: 10)
        state.set(isReady: false)
        clock.advance(milliseconds: 5)
        #expect(!state.isReady && state.absence == .milliseconds(5))
        // A cancelled task waits no longer.
        let waiting = Task { await state.waitUntilUsable() }
        waiting.cancel()
        await waiting.value
    }

    @Test func `a peer that is stopping is not usable until it is connected again`() async {
        let clock = ManualClock()
        let state = ConnectionState(isReady: true, clock: clock.clock)
        state.noteStopping()
        clock.advance(milliseconds: 30)
        #expect(state.isReady && !state.isUsable && state.absence == .milliseconds(30))
        state.set(isReady: false)
        clock.advance(milliseconds: 30)
        #expect(state.absence == .milliseconds(60), "since it said so")
        async let usable: Void = state.waitUntilUsable()
        state.set(isReady: true)
        await usable
        #expect(state.isUsable)
    }

    @Test func `without a connection, a request that does not wait for one is not sent`() async throws {
        try await MessagingFixture.with { fixture in
            let client = try RequestClient(
                address: fixture.address(.ipc),
                thread: fixture.clientThread,
                logger: fixture.logger
            )
            let refused = await error { () async throws(RPCError) in
                try await client.call("hello", deadline: .seconds(50), waitsForConnection: false)
            }
            #expect(refused?.name == "connection_lost" && refused?.isUnsent == true)
            let stream = client.stream("hello", deadline: .seconds(50), waitsForConnection: false)
            let ended = await error { () async throws(RPCError) in
                for try await case .reply(let reply) in stream { return reply }
                return Reply([:])
            }
            #expect(ended?.isUnsent == true)
        }
    }

    @Test func `when the connection is lost, requests are known to be sent or not sent`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let thread = try PollThread(name: "first")
            let server = try RequestServer(
                address: fixture.address(.ipc),
                thread: thread,
                logger: fixture.logger,
                handler: ClosureHandler { _, _ in
                    signals.signal("started")
                    try await untilCancelled()
                    return Reply([:])
                }
            )
            let running = Task { await server.run() }
            // Only one request at a time is sent; the other one waits in the client.
            var limits = MessagingLimits()
            limits.requestsPerConnection = 1
            let client = try fixture.client(server, limits: limits)
            await client.connection.waitUntilUsable()
            let first = Task {
                await error { () async throws(RPCError) in try await client.call("a", waitsForConnection: false) }
            }
            await signals.wait("started")
            let second = Task {
                await error { () async throws(RPCError) in try await client.call("b", waitsForConnection: false) }
            }
            while await client.metrics()["open"] != 2 { try await shortDelay() }
            // The sockets are closed without notice, as when the process is killed.
            await thread.shutdown()
            let (sent, unsent) = (await first.value, await second.value)
            #expect(sent?.name == "connection_lost" && sent?.isUnsent == false, "\(String(describing: sent))")
            #expect(unsent?.name == "connection_lost" && unsent?.isUnsent == true, "\(String(describing: unsent))")
            running.cancel()
            await running.value
        }
    }
}
