import CZeroMQ
import Foundation
import JSONValue
import TestSupport
import Testing

@testable import Messaging

/// Tests of the state of a client's connection, and of requests that do not wait for a connection.
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

    @Test func `the time without a connection is measured, and a connection resumes a waiting task`() async {
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
        // A cancelled task stops waiting.
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
        #expect(state.absence == .milliseconds(60), "since it announced its stop")
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

    @Test func `the error after a lost connection reports if the request was sent`() async throws {
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

    @Test func `a response that has arrived is delivered, even if the connection has ended since`() async throws {
        try await MessagingFixture.with { fixture in
            let server = try RawPeer(ZMQ_ROUTER, binding: fixture.address(.tcp))
            let address = try await server.boundAddress()
            let client = try RequestClient(
                address: address,
                thread: fixture.clientThread,
                security: .trustedLoopback,
                logger: fixture.logger
            )
            await client.connection.waitUntilUsable()
            let call = Task { try await client.call("hello") }
            let request = try await server.receive()
            // The client's thread finds the response and the end of the connection together.
            let signals = NamedSignals()
            let busy = Task {
                await client.keepThreadBusy(onStart: { signals.signal("busy") }, until: { !isConnected(to: address) })
            }
            await signals.wait("busy")
            try await server.respond(to: request, "hello")
            try await server.close()
            await busy.value
            #expect(try await call.value.result == "hello")

            while client.connection.isReady { try await shortDelay() }
            var bound: RawPeer?
            while bound == nil {
                // libzmq closes the port of the first server after its connection.
                bound = try? RawPeer(ZMQ_ROUTER, binding: address)
                try await shortDelay()
            }
            let next = try #require(bound)
            let again = Task { try await client.call("again") }
            try await next.respond(to: try await next.receive(), "again")
            #expect(try await again.value.result == "again")
            try await next.close()
        }
    }
}

extension RequestClient {
    /// Keeps the client's thread busy until the condition holds, for at most half a minute. Calls `onStart` first.
    fileprivate func keepThreadBusy(onStart: () -> Void, until condition: () -> Bool) {
        onStart()
        let end = ContinuousClock.now + .seconds(30)
        while !condition(), ContinuousClock.now < end { usleep(1000) }
    }
}

/// Returns true while a connection to a tcp address is open at the side that has connected.
private func isConnected(to address: EndpointAddress) -> Bool {
    let port = address.location.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
    let remote = String(format: "0100007F:%04X", port)
    let table = (try? String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)) ?? ""
    return table.split(separator: "\n").contains { line in
        let fields = line.split(separator: " ")
        // 06 is TIME_WAIT: closed.
        return fields.count > 3 && fields[2] == remote && fields[3] != "06"
    }
}
