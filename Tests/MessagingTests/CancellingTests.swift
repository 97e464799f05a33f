import CZeroMQ
import JSONValue
import TestSupport
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(5)))
struct CancellingTests {
    private func expectName(_ name: String, _ body: () async throws -> Void) async {
        let error = await #expect(throws: RPCError.self) { try await body() }
        #expect(error?.name == name)
    }

    @Test func `a call can be cancelled before the service is running`() async throws {
        try await MessagingFixture.with { fixture in
            let client = try RequestClient(
                address: fixture.address(.ipc),
                thread: fixture.clientThread,
                logger: fixture.logger
            )
            let call = Task { try await client.call("hello") }
            call.cancel()
            await expectName("user_cancelled") { _ = try await call.value }
            #expect(await client.metrics()["open"] == 0)
        }
    }

    @Test func `cancelling a call cancels its handler`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let handler = ClosureHandler { _, _ in
                signals.signal("started")
                defer { signals.signal("ended") }
                try await untilCancelled()
                return Reply([:])
            }
            try await fixture.serving(handler: handler) { server in
                let client = try fixture.client(server)
                let call = Task { try await client.call("hello") }
                await signals.wait("started")
                call.cancel()
                await expectName("user_cancelled") { _ = try await call.value }
                await signals.wait("ended")
            }
        }
    }

    @Test func `a cancelled request still gets exactly one response`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let handler = ClosureHandler { request, _ in
                if request.method == "echo" { return Reply(["echo": true]) }
                signals.signal("\(request.id.text) started")
                if request.method == "stubborn" {
                    await signals.wait("finish")
                    return Reply(["finished": true])
                }
                try await untilCancelled()
                return Reply([:])
            }
            try await fixture.serving(handler: handler) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send(request(1, "obedient"))
                await signals.wait("1 started")
                try await peer.send(["jsonrpc": "2.0", "method": "rpc.cancel", "params": ["id": 1]])
                let response = try await peer.receiveJSON()
                #expect(response["id"] == 1)
                #expect(response.errorCode == 3072)

                // A handler that ignores cancellation still returns its result. rpc.cancel with an id is answered.
                try await peer.send(request(2, "stubborn"))
                await signals.wait("2 started")
                try await peer.send(request("c", "rpc.cancel", ["id": 2]))
                #expect(try await peer.receiveJSON()["result"] == ["cancelled": true])
                signals.signal("finish")
                #expect(try await peer.receiveJSON()["result"] == ["finished": true])

                // Requests that have ended or belong to another connection cannot be cancelled.
                #expect(try await peer.ask(request("c", "rpc.cancel", ["id": 2]))["result"] == ["cancelled": false])
                #expect(try await peer.ask(request(3, "echo"))["result"] == ["echo": true])
            }
        }
    }

    @Test func `rpc.cancel affects only requests of its own connection`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let handler = ClosureHandler { _, _ in
                signals.signal("started")
                await signals.wait("finish")
                return Reply(["isCancelled": .bool(Task.isCancelled)])
            }
            try await fixture.serving(handler: handler) { server in
                let first = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let other = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await first.send(request(1, "work"))
                await signals.wait("started")
                #expect(try await other.ask(request(9, "rpc.cancel", ["id": 1]))["result"] == ["cancelled": false])
                signals.signal("finish")
                #expect(try await first.receiveJSON()["result"] == ["isCancelled": false])
            }
        }
    }

    @Test func `a request is answered at its deadline and a later result is dropped`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let clock = ManualClock()
            let handler = ClosureHandler { request, _ in
                if request.method == "echo" { return Reply([:]) }
                signals.signal("started")
                await signals.wait("finish")
                signals.signal(Task.isCancelled ? "was cancelled" : "was not cancelled")
                return Reply(["late": true])
            }
            try await fixture.serving(clock: clock.clock, handler: handler) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send(request("slow", "work", ["deadlineMs": 500]))
                await signals.wait("started")
                clock.advance(milliseconds: 499)
                #expect(try await peer.ask(request(1, "echo"))["id"] == 1)
                clock.advance(milliseconds: 2)
                try await peer.send(request(2, "echo"))
                let responses = [try await peer.receiveJSON(), try await peer.receiveJSON()]
                let late = responses.first { $0["id"] == "slow" }
                #expect(late?.errorName == "deadline_exceeded")
                #expect(!signals.isSignaled("was cancelled"))
                signals.signal("finish")
                await signals.wait("was cancelled")
                // The id can be reused, and the late result is never sent.
                #expect(try await peer.ask(request("slow", "echo"))["result"] == [:])
                while await server.metrics()["answersDropped"] != 1 { try await shortDelay() }
            }
        }
    }

    @Test func `a call ends at its deadline if the service is not running`() async throws {
        try await MessagingFixture.with { fixture in
            let client = try RequestClient(
                address: fixture.address(.ipc),
                thread: fixture.clientThread,
                logger: fixture.logger
            )
            await expectName("deadline_exceeded") { _ = try await client.call("hello", deadline: .milliseconds(20)) }
        }
    }

    @Test func `the handler gets the deadline, and the client enforces it`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let handler = ClosureHandler { request, context in
                if request.method == "echo" { return Reply([:]) }
                #expect(request.params == [:])
                #expect(context.deadlineMicroseconds < .max)
                signals.signal("called")
                try await untilCancelled()
                return Reply([:])
            }
            try await fixture.serving(handler: handler) { server in
                let client = try fixture.client(server)
                // The connection is ready, so that the request is sent long before its deadline.
                _ = try await client.call("echo")
                await expectName("deadline_exceeded") { _ = try await client.call("hello", deadline: .seconds(1)) }
                await signals.wait("called")
            }
        }
    }

    @Test func `when the service ends, open calls fail at once and later ones wait for its restart`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let thread = try PollThread(name: "first")
            let first = try RequestServer(
                address: fixture.address(.ipc),
                thread: thread,
                logger: fixture.logger,
                handler: ClosureHandler { _, _ in
                    signals.signal("started")
                    try await untilCancelled()
                    return Reply([:])
                }
            )
            let running = Task { await first.run() }
            let client = try fixture.client(first)
            let call = Task { try await client.call("hello") }
            await signals.wait("started")
            // The sockets are closed without notice, as when the process is killed.
            await thread.shutdown()
            await expectName("connection_lost") { _ = try await call.value }
            running.cancel()
            await running.value
            let later = Task { try await client.call("again") }
            let reply = try await fixture.serving { _ in try await later.value }
            #expect(reply.result["method"] == "again")
        }
    }

    @Test func `handlers are cancelled when their caller disconnects`() async throws {
        for kind in [MessagingFixture.Kind.ipc, .tcp] {
            try await MessagingFixture.with { fixture in
                let signals = NamedSignals()
                let handler = ClosureHandler { _, context in
                    signals.signal("started")
                    defer { signals.signal("ended") }
                    // No credit is sent: only the end of the connection can end this handler.
                    while true { try await context.notifier.notify("tick", [:]) }
                }
                try await fixture.serving(kind, handler: handler) { server in
                    let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                    try await peer.send(request(1, "follow", ["credit": 1]))
                    await signals.wait("started")
                    #expect(try await peer.receiveJSON()["method"] == "tick")
                    try await peer.close()
                    await signals.wait("ended")
                    while await server.metrics()["connections"] != 0 { try await shortDelay() }
                }
            }
        }
    }
}
