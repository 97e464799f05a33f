import Basics
import CZeroMQ
import JSONValue
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(5)))
struct NotificationTests {
    @Test func `notifications arrive before the response, in order, with the request's id`() async throws {
        try await MessagingFixture.with { fixture in
            let handler = ClosureHandler { _, context in
                for step in 0..<100 {
                    try await context.notifier.notify("progress", ["step": JSON(step)], attachments: [[UInt8(step)]])
                }
                return Reply(["done": true])
            }
            try await fixture.serving(handler: handler) { server in
                let client = try fixture.client(server)
                var steps: [Int64] = []
                var reply: Reply?
                for try await element in client.stream("work", deadline: .seconds(10)) {
                    switch element {
                    case .notification(let method, let params, let attachments):
                        #expect(method == "progress")
                        #expect(params["id"]?.intValue != nil)
                        #expect(reply == nil)
                        let step = params["step"]?.intValue ?? -1
                        #expect(attachments == [[UInt8(step)]])
                        steps.append(step)
                    case .reply(let last): reply = last
                    }
                }
                #expect(steps == Array(0..<100))
                #expect(reply == Reply(["done": true]))
            }
        }
    }

    @Test func `notifications can be received unparsed and parsed later`() async throws {
        try await MessagingFixture.with { fixture in
            let handler = ClosureHandler { _, context in
                try await context.notifier.notify("one", ["text": "}\"{", "list": [1, ["id": 7]]])
                try await context.notifier.notify("two", encoded: Bytes("{\"a\":[{\"id\":\"x\"}]}".utf8))
                // A notification with attachments is parsed in any case.
                try await context.notifier.notify("three", ["a": 3], attachments: [[1]])
                return Reply(["done": true])
            }
            try await fixture.serving(handler: handler) { server in
                let client = try fixture.client(server)
                var found: [String: JSON] = [:]
                var reply: Reply?
                for try await element in client.encodedStream("work", credit: 1000) {
                    switch element {
                    case .notification(let notification):
                        var params = try JSON(parsing: notification.frame[notification.range]).objectValue
                        #expect(params?["id"]?.intValue != nil)
                        params?["id"] = nil
                        found[notification.method] = params.map(JSON.object)
                    case .reply(let last): reply = last
                    }
                }
                #expect(
                    found == [
                        "one": ["text": "}\"{", "list": [1, ["id": 7]]], "two": ["a": [["id": "x"]]], "three": ["a": 3],
                    ]
                )
                #expect(reply == Reply(["done": true]))
                // Other requests of the same client are still answered.
                #expect(try await client.call("work", deadline: .seconds(10)) == Reply(["done": true]))
            }
        }
    }

    @Test func `a stream stops without byte credit and continues with it`() async throws {
        try await MessagingFixture.with { fixture in
            let sent = Counter()
            let handler = ClosureHandler { request, context in
                #expect(context.credit == 1000)
                #expect(request.params == [:])
                for _ in 0..<20 {
                    try await context.notifier.notify("chunk", [:], attachments: [Bytes(repeating: 1, count: 400)])
                    sent.add()
                }
                return Reply([:])
            }
            try await fixture.serving(handler: handler) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send(request(1, "read", ["credit": 1000]))
                // Each message is over 400 bytes: the third one uses the last of the credit.
                for _ in 0..<3 { _ = try await peer.receive() }
                #expect(
                    try await peer.ask(request(2, "rpc.credit", ["id": 1, "bytes": 0]))["result"] == ["credited": true]
                )
                #expect(sent.count == 3)
                try await peer.send(["jsonrpc": "2.0", "method": "rpc.credit", "params": ["id": 1, "bytes": 600]])
                _ = try await peer.receive()
                try await peer.send(
                    ["jsonrpc": "2.0", "method": "rpc.credit", "params": ["id": 1, "bytes": .int(.max)]])
                for _ in 4..<20 { #expect(try await peer.receive().count == 2) }
                #expect(try await peer.receiveJSON()["result"] == [:])
            }
        }
    }

    @Test func `a stream returns credit as its notifications are read`() async throws {
        try await MessagingFixture.with { fixture in
            let sent = Counter()
            let handler = ClosureHandler { _, context in
                for _ in 0..<200 {
                    try await context.notifier.notify("chunk", [:], attachments: [Bytes(repeating: 1, count: 50_000)])
                    sent.add()
                }
                return Reply([:])
            }
            try await fixture.serving(handler: handler) { server in
                let client = try fixture.client(server)
                var read = 0
                for try await element in client.stream("read", deadline: nil, credit: 200_000) {
                    guard case .notification = element else { continue }
                    read += 1
                    // Four fit in the credit, and one more may overshoot it; one may be counted but not read yet.
                    #expect(sent.count <= read + 6)
                }
                #expect(read == 200)
            }
        }
    }

    @Test func `leaving the loop cancels the request`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let handler = ClosureHandler { _, context in
                defer { signals.signal("ended") }
                while true { try await context.notifier.notify("tick", [:]) }
            }
            try await fixture.serving(handler: handler) { server in
                let client = try fixture.client(server)
                for try await _ in client.stream("follow", deadline: nil, credit: 10_000) { break }
                await signals.wait("ended")
            }
        }
    }

    @Test func `cancelling the reading task ends the stream and the request`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let handler = ClosureHandler { _, context in
                defer { signals.signal("ended") }
                try await context.notifier.notify("tick", [:])
                try await untilCancelled()
                return Reply([:])
            }
            try await fixture.serving(handler: handler) { server in
                let client = try fixture.client(server)
                let reading = Task {
                    for try await _ in client.stream("follow", deadline: nil, credit: 10_000) { signals.signal("tick") }
                }
                await signals.wait("tick")
                reading.cancel()
                let error = await #expect(throws: RPCError.self) { try await reading.value }
                #expect(error?.name == "user_cancelled")
                await signals.wait("ended")
            }
        }
    }

    @Test func `a stream without credit ends with limit_exceeded if its reader is too slow`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.inboxMessages = 10
            let handler = ClosureHandler { _, context in
                for _ in 0..<1000 { try await context.notifier.notify("tick", [:]) }
                try await untilCancelled()
                return Reply([:])
            }
            try await fixture.serving(handler: handler) { server in
                let client = try fixture.client(server, limits: limits)
                var stream = client.stream("follow", deadline: .seconds(20)).makeAsyncIterator()
                while await server.metrics()["notificationsSent"] == 0 { try await shortDelay() }
                while await client.metrics()["open"] != 0 { try await shortDelay() }
                var read = 0
                let error = await #expect(throws: RPCError.self) {
                    while try await stream.next() != nil { read += 1 }
                }
                #expect(error?.name == "limit_exceeded")
                #expect(read == 10)
            }
        }
    }

    @Test(arguments: [[100_000], [50_000, 50_000], [3000]])
    func `a peer that does not read blocks only its own requests, and takes limited memory`(frames: [Int]) async throws
    {
        let attachments = frames.map { Bytes(repeating: 1, count: $0) }
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.outboxBytesPerConnection = 1 << 20
            // The bytes of the messages must stop the flood, not libzmq's limit of their number.
            limits.sendHighWaterMark = 100_000
            let sent = Counter()
            let handler = ClosureHandler { request, context in
                guard request.method == "flood" else { return Reply([:]) }
                while sent.count < 20_000 {
                    try await context.notifier.notify("chunk", [:], attachments: attachments)
                    sent.add()
                }
                return Reply([:])
            }
            try await fixture.serving(limits: limits, handler: handler) { server in
                let stalled = try RawPeer(ZMQ_DEALER, server.boundAddress, options: [(ZMQ_RCVHWM, 1)])
                try await stalled.send(request(1, "flood"))
                let client = try fixture.client(server)
                var before = -1
                // The flood has stopped when nothing is sent during a hundred round trips of another client.
                while sent.count != before || before < 10 {
                    before = sent.count
                    for _ in 0..<100 {
                        _ = try await client.call("hello")
                    }
                }
                let waiting = await server.metrics()["outboxBytes"]?.intValue ?? .max
                #expect(waiting <= (1 << 20) + 200_000)
                #expect(sent.count * frames.reduce(0, +) < 20_000_000, "the rest is in buffers of the kernel")
            }
        }
    }

    @Test
    func `a peer that does not read is disconnected when the messages of others wait for its memory`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.outboxBytesPerConnection = 4 << 20
            limits.outboxBytes = 4 << 20
            limits.sendHighWaterMark = 100_000
            limits.stallTimeout = .milliseconds(100)
            let attachment = Bytes(repeating: 1, count: 100_000)
            let handler = ClosureHandler { request, context in
                guard request.method == "flood" else { return Reply([:]) }
                while !Task.isCancelled { try await context.notifier.notify("chunk", [:], attachments: [attachment]) }
                return Reply([:])
            }
            try await fixture.serving(limits: limits, handler: handler) { server in
                let stalled = try RawPeer(ZMQ_DEALER, server.boundAddress, options: [(ZMQ_RCVHWM, 1)])
                try await stalled.send(request(1, "flood"))
                let client = try fixture.client(server)
                while await server.metrics()["connectionsEnded"] != 1 { _ = try await client.call("hello") }
                while await server.metrics()["outboxBytes"]?.intValue ?? .max > 1 << 20 { try await shortDelay() }
                _ = try await client.call("hello")
            }
        }
    }
}
