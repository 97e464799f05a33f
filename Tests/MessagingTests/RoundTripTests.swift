import Basics
import CZeroMQ
import Glibc
import JSONValue
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(5)))
struct RoundTripTests {
    @Test(arguments: MessagingFixture.Kind.allCases)
    func `a call returns the handler's reply`(kind: MessagingFixture.Kind) async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(kind) { server in
                let client = try fixture.client(server)
                let reply = try await client.call("hello", ["name": "Ada"])
                #expect(reply.result["method"] == "hello")
                #expect(reply.result["params"] == ["name": "Ada"])
                #expect(reply.attachments.isEmpty)
            }
        }
    }

    @Test(arguments: MessagingFixture.Kind.allCases)
    func `small and large attachments are sent in both directions`(kind: MessagingFixture.Kind) async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(kind) { server in
                let client = try fixture.client(server)
                let attachments: [Bytes] = [
                    [], [1, 2, 3], Bytes(repeating: 7, count: 65_536), Bytes(repeating: 9, count: 3_000_000),
                ]
                let reply = try await client.call("hello", attachments: attachments)
                #expect(reply.attachments == attachments)
            }
        }
    }

    @Test func `an error arrives with its code, name, message and data`() async throws {
        try await MessagingFixture.with { fixture in
            let refusing = ClosureHandler { _, _ in
                throw RPCError(code: 9100, name: "behind", message: "wait", data: ["sequence": 7])
            }
            try await fixture.serving(handler: refusing) { server in
                let client = try fixture.client(server)
                await #expect(throws: RPCError(code: 9100, name: "behind", message: "wait", data: ["sequence": 7])) {
                    try await client.call("hello")
                }
            }
        }
    }

    @Test func `the identity is the caller's uid over ipc, and unknown over tcp`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(.ipc) { server in
                let reply = try await fixture.client(server).call("hello")
                #expect(reply.result["identity"] == .string("uid:\(getuid())"))
            }
            try await fixture.serving(.tcp) { server in
                let reply = try await fixture.client(server).call("hello")
                #expect(reply.result["identity"] == "loopback")
            }
        }
    }

    @Test(arguments: MessagingFixture.Kind.allCases)
    func `a client handles 512 concurrent calls`(kind: MessagingFixture.Kind) async throws {
        try await MessagingFixture.with { fixture in
            let arrived = Counter()
            let signals = NamedSignals()
            // The client sends 256 requests at a time: each handler waits until 256 have arrived.
            let slow = ClosureHandler { request, _ in
                if arrived.add() == 256 { signals.signal("all") }
                await signals.wait("all")
                return Reply(request.params)
            }
            try await fixture.serving(kind, handler: slow) { server in
                let client = try fixture.client(server)
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for number in 0..<512 {
                        group.addTask {
                            try await client.call("n", ["number": JSON(number)]).result == ["number": JSON(number)]
                        }
                    }
                    for try await isEqual in group { #expect(isEqual) }
                }
                #expect(arrived.count == 512)
                #expect(await server.metrics()["requests"] == 512)
            }
        }
    }

    @Test func `a large JSON frame is parsed on another queue without changing the order`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let large = JSON.string(String(repeating: "x", count: 200_000))
                try await peer.send(request("a", "large", ["text": large]))
                // This request is refused as a duplicate only if the large request before it is already open.
                try await peer.send(request("a", "small"))
                let responses = [try await peer.receiveJSON(), try await peer.receiveJSON()]
                let largeOne = responses.first { $0["result"]?["method"] == "large" }
                let other = responses.first { $0["result"]?["method"] != "large" }
                #expect(largeOne?["id"] == "a")
                #expect(other?["result"]?["method"] == "small" || other?.errorName == "invalid_request")
                try await peer.send([request("b", "large", ["text": large]).bytes, [1], [2, 3]])
                #expect(try await peer.receive().dropFirst() == [[1], [2, 3]])
            }
        }
    }

    @Test func `a reply above the size limit of a message becomes an error`() async throws {
        try await MessagingFixture.with { fixture in
            let large = ClosureHandler { _, _ in
                Reply([:], attachments: [Bytes](repeating: Bytes(repeating: 0, count: 8 << 20), count: 3))
            }
            try await fixture.serving(handler: large) { server in
                let client = try fixture.client(server)
                let error = await #expect(throws: RPCError.self) { try await client.call("large") }
                #expect(error?.name == "limit_exceeded")
                let tooLarge = await #expect(throws: RPCError.self) {
                    try await client.call("large", attachments: [Bytes(repeating: 0, count: (8 << 20) + 1)])
                }
                #expect(tooLarge?.name == "limit_exceeded")
            }
        }
    }

    /// A handler that replies to some requests on the poll thread. Each reply names the thread that has created it.
    private struct QuickHandler: RequestHandler {
        @concurrent
        func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
            Reply(["by": "task"], attachments: context.attachments)
        }

        func replyAtOnce(to request: IncomingRequest, _ context: RequestContext) -> Reply? {
            switch request.method {
            case "quick": Reply(["by": "poll thread"], attachments: context.attachments)
            case "large": Reply([:], attachments: [Bytes](repeating: Bytes(repeating: 0, count: 8 << 20), count: 3))
            default: nil
            }
        }
    }

    @Test(arguments: MessagingFixture.Kind.allCases)
    func `immediate replies are sent without a task, and other replies by a task`(kind: MessagingFixture.Kind)
        async throws
    {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(kind, handler: QuickHandler()) { server in
                let client = try fixture.client(server)
                for round in 1...3 {
                    let reply = try await client.call("quick", attachments: [[1, 2]])
                    #expect(reply == Reply(["by": "poll thread"], attachments: [[1, 2]]))
                    #expect(try await client.call("slow").result["by"] == "task")
                    #expect(try await client.call("large").result["by"] == "task", "too large to be sent")
                    var metrics = await server.metrics()
                    #expect(metrics["answersAtOnce"] == JSON(round) && metrics["answers"] == JSON(3 * round))
                    // A client may have a reply before the poll thread has counted it as sent.
                    for _ in 0..<100_000 where metrics["outboxBytes"] != 0 {
                        await Task.yield()
                        metrics = await server.metrics()
                    }
                    #expect(metrics["open"] == 0 && metrics["outboxBytes"] == 0)
                }
            }
        }
    }

    @Test(arguments: MessagingFixture.Kind.allCases)
    func `a request queued behind a large one that is answered at once gets its response`(kind: MessagingFixture.Kind)
        async throws
    {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(kind, handler: QuickHandler()) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let padding = JSON.string(String(repeating: "x", count: 2 * MessagingLimits().parseInlineBytes))
                for _ in 0..<20 {
                    try await peer.send(["jsonrpc": "2.0", "id": 1, "method": "quick", "params": ["padding": padding]])
                    try await peer.send(["jsonrpc": "2.0", "id": 2, "method": "slow"])
                    let responses = [try await peer.receive(), try await peer.receive()]
                    let ids = try responses.map { try JSON(parsing: $0[0])["id"]?.intValue }
                    #expect(ids == [1, 2])
                }
            }
        }
    }

    @Test func `immediate replies wait if their peer does not read`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.outboxBytes = 1 << 20
            limits.sendHighWaterMark = 1
            try await fixture.serving(limits: limits, handler: QuickHandler()) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress, options: [(ZMQ_RCVHWM, 1)])
                let bytes = Bytes(repeating: 7, count: 1 << 20)
                for number in 0..<40 {
                    try await peer.send(["jsonrpc": "2.0", "id": JSON(number), "method": "quick"], [bytes])
                }
                while await server.metrics()["requests"] != 40 { try await shortDelay() }
                let metrics = await server.metrics()
                #expect(try #require(metrics["outboxBytes"]?.intValue) <= 3 << 20, "one message above the limit")
                var responses = Set<Bytes>()
                while responses.count < 40 { responses.insert(try await peer.receive()[0]) }
                #expect(await server.metrics()["answers"] == 40, "every request is answered")
            }
        }
    }

    @Test func `a plain REQ client gets exactly one message, with and without correlation`() async throws {
        try await MessagingFixture.with { fixture in
            let chatty = ClosureHandler { request, context in
                #expect(!context.acceptsNotifications)
                let wasSent = try await context.notifier.notify("progress", [:])
                #expect(!wasSent)
                return Reply(["done": true], attachments: [[1, 2]])
            }
            try await fixture.serving(handler: chatty) { server in
                for options in [[], [(ZMQ_REQ_CORRELATE, 1 as Int32), (ZMQ_REQ_RELAXED, 1 as Int32)]] {
                    let script = try RawPeer(ZMQ_REQ, server.boundAddress, options: options)
                    for id: JSON in [1, "two"] {
                        try await script.send(request(id, "work"))
                        let frames = try await script.receive()
                        #expect(try JSON(parsing: frames[0]) == ["jsonrpc": "2.0", "id": id, "result": ["done": true]])
                        #expect(frames.dropFirst() == [[1, 2]])
                    }
                }
            }
        }
    }

    @Test func `a stopping server finishes accepted requests and refuses further ones`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let handler = ClosureHandler { request, _ in
                signals.signal("received")
                await signals.wait("go on")
                return Reply(["finished": true], attachments: [Bytes(repeating: 1, count: 1_000_000)])
            }
            var limits = MessagingLimits()
            limits.linger = .seconds(20)
            let server = try RequestServer(
                address: fixture.address(.ipc),
                thread: fixture.serverThread,
                limits: limits,
                logger: fixture.logger,
                handler: handler
            )
            let running = Task { await server.run() }
            let client = try fixture.client(server)
            async let pending = client.call("first")
            await signals.wait("received")
            running.cancel()
            // The stop event reaches the poll thread before this call does.
            let refused = await #expect(throws: RPCError.self) { try await client.call("second") }
            #expect(refused?.name == "busy")
            signals.signal("go on")
            let reply = try await pending
            #expect(reply.result == ["finished": true])
            #expect(reply.attachments.first?.count == 1_000_000)
            await running.value
        }
    }

    @Test func `a process sends its responses before it ends`() async throws {
        try await MessagingFixture.with { fixture in
            // A separate context represents the service's process.
            let context = MessagingContext()
            let thread = try PollThread(name: "service", context: context)
            var limits = MessagingLimits()
            limits.linger = .seconds(20)
            let server = try RequestServer(
                address: fixture.address(.ipc),
                thread: thread,
                limits: limits,
                logger: fixture.logger,
                handler: EchoHandler()
            )
            let running = Task { await server.run() }
            let client = try fixture.client(server)
            let signals = NamedSignals()
            let calls = (0..<8).map { _ in
                Task {
                    let reply = try await client.call("hello", attachments: [Bytes(repeating: 1, count: 4 << 20)])
                    signals.signal("first")
                    return reply.attachments.first?.count
                }
            }
            await signals.wait("first")
            running.cancel()
            await running.value
            await thread.shutdown()
            await context.finish(within: .seconds(20))
            for call in calls {
                switch await call.result {
                case .success(let count): #expect(count == 4 << 20)
                // Calls that arrived too late got an error, and none waited until its deadline.
                case .failure(let error): #expect((error as? RPCError)?.name != "deadline_exceeded")
                }
            }
            #expect(throws: MessagingError.self) {
                try Publisher(address: fixture.address(.ipc, "late"), thread: thread, logger: fixture.logger)
            }
        }
    }

    @Test
    func `a request whose handler calls a closed client ends with the error of a stopping service`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(.inproc) { other in
                let own = try fixture.client(other)
                await own.close()
                let handler = ClosureHandler { _, _ in Reply(try await own.call("inner").result) }
                try await fixture.serving(handler: handler) { server in
                    let client = try fixture.client(server)
                    let error = await #expect(throws: RPCError.self) { try await client.call("outer") }
                    #expect(error == .endedByStop)
                }
            }
        }
    }

    @Test func `a stopping server waits for a handler up to the drain timeout`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.drainTimeout = .milliseconds(50)
            limits.linger = .seconds(20)
            let signals = NamedSignals()
            let handler = ClosureHandler { _, _ in
                signals.signal("received")
                try await untilCancelled()
                return Reply([:])
            }
            let server = try RequestServer(
                address: fixture.address(.ipc),
                thread: fixture.serverThread,
                limits: limits,
                logger: fixture.logger,
                handler: handler
            )
            let running = Task { await server.run() }
            let client = try fixture.client(server)
            let pending = Task { try await client.call("first") }
            await signals.wait("received")
            running.cancel()
            let error = await #expect(throws: RPCError.self) { try await pending.value }
            #expect(error == .endedByStop && error?.name == "interrupted" && error?.isOfStoppingService == true)
            await running.value
        }
    }
}
