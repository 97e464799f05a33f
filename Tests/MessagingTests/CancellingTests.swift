import CZeroMQ
import JSONValue
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(5)))
struct CancellingTests {
    private func expectName(_ name: String, _ body: () async throws -> Void) async {
        let error = await #expect(throws: RPCError.self) { try await body() }
        #expect(error?.name == name)
    }

    @Test func `a call can be cancelled before the service is running`() async throws {
        try await MessagingRoom.with { room in
            let client = try RequestClient(
                address: room.address(.ipc),
                thread: room.clientThread,
                logger: room.logger
            )
            let call = Task { try await client.call("hello") }
            call.cancel()
            await expectName("user_cancelled") { _ = try await call.value }
            #expect(await client.figures()["open"] == 0)
        }
    }

    @Test func `cancelling a call cancels its handler`() async throws {
        try await MessagingRoom.with { room in
            let moments = Moments()
            let handler = Closure { _, _ in
                moments.tell("started")
                defer { moments.tell("ended") }
                try await untilCancelled()
                return Reply([:])
            }
            try await room.serving(handler: handler) { server in
                let client = try room.client(server)
                let call = Task { try await client.call("hello") }
                await moments.wait("started")
                call.cancel()
                await expectName("user_cancelled") { _ = try await call.value }
                await moments.wait("ended")
            }
        }
    }

    @Test func `a cancelled request still gets exactly one response`() async throws {
        try await MessagingRoom.with { room in
            let moments = Moments()
            let handler = Closure { request, _ in
                if request.method == "echo" { return Reply(["echo": true]) }
                moments.tell("\(request.id.text) started")
                if request.method == "stubborn" {
                    await moments.wait("finish")
                    return Reply(["finished": true])
                }
                try await untilCancelled()
                return Reply([:])
            }
            try await room.serving(handler: handler) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send(request(1, "obedient"))
                await moments.wait("1 started")
                try await peer.send(["jsonrpc": "2.0", "method": "rpc.cancel", "params": ["id": 1]])
                let answer = try await peer.receiveJSON()
                #expect(answer["id"] == 1)
                #expect(answer.errorCode == 3072)

                // A handler that ignores cancellation still returns its result. rpc.cancel with an id is answered.
                try await peer.send(request(2, "stubborn"))
                await moments.wait("2 started")
                try await peer.send(request("c", "rpc.cancel", ["id": 2]))
                #expect(try await peer.receiveJSON()["result"] == ["cancelled": true])
                moments.tell("finish")
                #expect(try await peer.receiveJSON()["result"] == ["finished": true])

                // Requests that have ended or belong to another connection cannot be cancelled.
                #expect(try await peer.ask(request("c", "rpc.cancel", ["id": 2]))["result"] == ["cancelled": false])
                #expect(try await peer.ask(request(3, "echo"))["result"] == ["echo": true])
            }
        }
    }

    @Test func `the method rpc dot cancel affects only requests of its own connection`() async throws {
        try await MessagingRoom.with { room in
            let moments = Moments()
            let handler = Closure { _, _ in
                moments.tell("started")
                await moments.wait("finish")
                return Reply(["isCancelled": .bool(Task.isCancelled)])
            }
            try await room.serving(handler: handler) { server in
                let one = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let other = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await one.send(request(1, "work"))
                await moments.wait("started")
                #expect(try await other.ask(request(9, "rpc.cancel", ["id": 1]))["result"] == ["cancelled": false])
                moments.tell("finish")
                #expect(try await one.receiveJSON()["result"] == ["isCancelled": false])
            }
        }
    }

    @Test func `a request is answered at its deadline and a later result is dropped`() async throws {
        try await MessagingRoom.with { room in
            let moments = Moments()
            let clock = ManualClock()
            let handler = Closure { request, _ in
                if request.method == "echo" { return Reply([:]) }
                moments.tell("started")
                await moments.wait("finish")
                moments.tell(Task.isCancelled ? "was cancelled" : "was not cancelled")
                return Reply(["late": true])
            }
            try await room.serving(clock: clock.clock, handler: handler) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send(request("slow", "work", ["deadlineMs": 500]))
                await moments.wait("started")
                clock.advance(milliseconds: 499)
                #expect(try await peer.ask(request(1, "echo"))["id"] == 1)
                clock.advance(milliseconds: 2)
                try await peer.send(request(2, "echo"))
                let answers = [try await peer.receiveJSON(), try await peer.receiveJSON()]
                let late = answers.first { $0["id"] == "slow" }
                #expect(late?.errorName == "deadline_exceeded")
                #expect(!moments.isTold("was cancelled"))
                moments.tell("finish")
                await moments.wait("was cancelled")
                // The id can be reused, and the late result is never sent.
                #expect(try await peer.ask(request("slow", "echo"))["result"] == [:])
                while await server.figures()["answersDropped"] != 1 { try await aMoment() }
            }
        }
    }

    @Test func `a call ends at its deadline if the service is not running`() async throws {
        try await MessagingRoom.with { room in
            let client = try RequestClient(
                address: room.address(.ipc),
                thread: room.clientThread,
                logger: room.logger
            )
            await expectName("deadline_exceeded") { _ = try await client.call("hello", deadline: .milliseconds(20)) }
        }
    }

    @Test func `the handler gets the deadline, and the client enforces it`() async throws {
        try await MessagingRoom.with { room in
            let handler = Closure { request, _ in
                #expect(request.params == [:])
                #expect(request.deadlineMicroseconds < .max)
                try await untilCancelled()
                return Reply([:])
            }
            try await room.serving(handler: handler) { server in
                let client = try room.client(server)
                await expectName("deadline_exceeded") {
                    _ = try await client.call("hello", deadline: .milliseconds(30))
                }
            }
        }
    }

    @Test func `when the service ends, open calls fail at once and later ones wait for its restart`() async throws {
        try await MessagingRoom.with { room in
            let moments = Moments()
            let thread = try PollThread(name: "first")
            let first = try RequestServer(
                address: room.address(.ipc),
                thread: thread,
                logger: room.logger,
                handler: Closure { _, _ in
                    moments.tell("started")
                    try await untilCancelled()
                    return Reply([:])
                }
            )
            let running = Task { await first.run() }
            let client = try room.client(first)
            let call = Task { try await client.call("hello") }
            await moments.wait("started")
            // The sockets are closed without notice, as when the process is killed.
            await thread.shutdown()
            await expectName("connection_lost") { _ = try await call.value }
            running.cancel()
            await running.value
            let later = Task { try await client.call("again") }
            let reply = try await room.serving { _ in try await later.value }
            #expect(reply.result["method"] == "again")
        }
    }

    @Test func `handlers are cancelled when their caller disconnects`() async throws {
        for kind in [MessagingRoom.Kind.ipc, .tcp] {
            try await MessagingRoom.with { room in
                let moments = Moments()
                let handler = Closure { _, notifier in
                    moments.tell("started")
                    defer { moments.tell("ended") }
                    // No credit is sent: only the end of the connection can end this handler.
                    while true { try await notifier.notify("tick", [:]) }
                }
                try await room.serving(kind, handler: handler) { server in
                    let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                    try await peer.send(request(1, "follow", ["credit": 1]))
                    await moments.wait("started")
                    #expect(try await peer.receiveJSON()["method"] == "tick")
                    try await peer.close()
                    await moments.wait("ended")
                    while await server.figures()["connections"] != 0 { try await aMoment() }
                }
            }
        }
    }
}
