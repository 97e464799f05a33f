import Basics
import CZeroMQ
import JSONValue
import Testing

@testable import Messaging

/// Tests that a client with many connections leaves connections, memory and capacity for other clients.
@Suite(.timeLimit(.minutes(5)))
struct ClientShareTests {
    /// A separate context, whose TCP connections are not counted with those of other tests, with a list of keys and a
    /// thread.
    private struct Limited {
        let curve: CurveFixture
        let thread: PollThread

        init(connections: Int) throws {
            let context = MessagingContext()
            context.limitTCPConnections(to: connections)
            curve = try CurveFixture(context: context)
            thread = try PollThread(name: "limited", context: context)
        }
    }

    /// Creates peers that do not reconnect after their connections have been ended.
    private func peers(
        _ count: Int,
        _ kind: Int32,
        _ address: EndpointAddress,
        _ security: SocketSecurity,
        options: [(Int32, Int32)] = []
    ) throws -> [RawPeer] {
        try (0..<count).map { _ in
            try RawPeer(kind, address, options: [(ZMQ_RECONNECT_IVL, -1)] + options, security: security)
        }
    }

    private func client(
        _ fixture: MessagingFixture,
        _ server: RequestServer,
        _ security: SocketSecurity
    ) throws -> RequestClient {
        try RequestClient(
            address: server.boundAddress,
            thread: fixture.clientThread,
            security: security,
            logger: fixture.logger
        )
    }

    // MARK: Connections

    @Test func `a connection that sends more bytes than a message may have, without an end, is detected`() {
        let table = PeerTable(counts: ConnectionCounts())
        #expect(table.nextEndlessMessageCheck == .max)
        var received: [Int32: Int64] = [1: 0, 2: 0, 3: 0]
        for descriptor in received.keys { table.opened(descriptor, at: 0) }
        func endless(at now: Int64) -> [Int32] {
            table.endless(at: now, above: 100_000) { received[$0] ?? -1 }.map(\.descriptor).sorted()
        }
        _ = table.identify(1, as: nil)
        #expect(endless(at: 0) == [])
        received = [1: 90_000, 2: 101_000, 3: 100_000]
        #expect(endless(at: 1) == [], "the last check is too recent")
        #expect(endless(at: 300_000) == [2], "also before its first message")
        table.delivered(1)
        received = [1: 500_000, 2: 102_000, 3: -1]
        #expect(endless(at: 600_000) == [2], "the first has sent a whole message")
        received[1] = 601_000
        #expect(endless(at: 900_000) == [1, 2])
        table.closed(1)
        table.opened(1, at: 900_000)
        received[1] = 50_000
        #expect(endless(at: 1_200_000) == [2], "it is another connection")
        for number in Int64(1)...1000 {
            received[1] = 50_000 + 200 * number
            #expect(endless(at: 1_200_000 + 300_000 * number) == [2], "heartbeats are not messages")
        }
        let local = PeerTable()
        local.opened(1, at: 0)
        #expect(local.nextEndlessMessageCheck == .max, "only connections over TCP are checked")
    }

    @Test func `the oldest connections that have sent no message are ended when few are left`() {
        let counts = ConnectionCounts()
        counts.maxCount = 32
        let table = PeerTable(counts: counts)
        let second: Int64 = 1_000_000
        for number in 0..<20 as Range<Int32> { table.opened(number, at: Int64(number)) }
        _ = table.identify(0, as: nil)
        #expect(table.silent(at: second).isEmpty, "they may still send something")
        #expect(table.silent(at: 40 * second).map(\.descriptor) == [1, 2, 3, 4], "16 are half of all")
        for number in 20..<30 as Range<Int32> { table.opened(number, at: 40 * second + Int64(number)) }
        #expect(table.silent(at: 40 * second + 99).isEmpty, "the check runs once a second")
        for number in 1..<20 as Range<Int32> { _ = table.identify(number, as: nil) }
        #expect(table.silent(at: 42 * second).map(\.descriptor) == Array(20..<26), "24 are three quarters of all")
        for number in 20..<30 as Range<Int32> { table.closed(number) }
        #expect(table.nextCheck == .max)
        table.removeAll()
        #expect(counts.surplus.ofHalf == -16)
    }

    @Test func `keys of clients leave connections for services and for keys with few connections`() {
        let counts = ConnectionCounts()
        counts.maxCount = 1024
        let tables = (0..<2).map { _ in
            PeerTable(counts: counts) { $0.name == "service" }
        }
        func identify(_ table: Int, _ descriptor: Int32, _ name: String) -> Bool {
            tables[table].opened(descriptor, at: 0)
            return tables[table].identify(descriptor, as: CurveIdentity(key: name, name: name))
        }
        // A key may have a quarter of the connections at each socket.
        for number in 0..<256 as Range<Int32> { #expect(identify(0, number, "a") && identify(1, number, "a")) }
        #expect(!identify(0, 256, "a") && !identify(1, 256, "a"))
        for number in 300..<556 as Range<Int32> { _ = identify(0, number, "b") }
        #expect(identify(0, 600, "c") && identify(0, 601, "c"))
        #expect(!identify(0, 602, "c"), "together they have more than three quarters")
        for number in 700..<800 as Range<Int32> { #expect(identify(1, number, "service")) }
    }

    @Test func `an ended connection is not counted again when messages that it has sent arrive`() async throws {
        let counts = ConnectionCounts()
        counts.maxCount = 1024
        let table = PeerTable(maxPerKey: 2, counts: counts)
        let ann = CurveIdentity(key: "ann", name: "ann")
        for number in 0..<8 as Range<Int32> {
            table.opened(number, at: 0)
            table.closed(number)
            #expect(table.identify(number, as: ann))
        }
        #expect(table.count == 0 && counts.surplus.ofHalf == -512)
        try await MessagingFixture.with { fixture in
            let limited = try Limited(connections: 1024)
            var limits = MessagingLimits()
            (limits.pushersPerKey, limits.inboxMessages) = (2, 1)
            let puller = try Puller(
                address: fixture.address(.tcp),
                thread: limited.thread,
                limits: limits,
                security: limited.curve.serving
            )
            func connections() async -> JSON? { await puller.metrics()["connections"] }
            let client = try limited.curve.client("ann")
            let first = try RawPeer(ZMQ_PUSH, puller.boundAddress, security: client)
            try await first.send([[0]])
            while await puller.metrics()["received"] != 1 { try await shortDelay() }
            // The inbox is full: libzmq keeps the messages of these peers until the inbox is read.
            for number in 1...2 as ClosedRange<UInt8> {
                let peer = try RawPeer(
                    ZMQ_PUSH,
                    puller.boundAddress,
                    options: [(ZMQ_LINGER, 20_000)],
                    security: client
                )
                try await peer.send([[number]])
                while await connections() != 2 { try await shortDelay() }
                try await peer.close()
                while await connections() != 1 { try await shortDelay() }
            }
            var received: Set<UInt8> = []
            var messages = puller.messages.makeAsyncIterator()
            for _ in 0..<3 { if let number = await messages.next()?.frames.first?.first { received.insert(number) } }
            #expect(received == [0, 1, 2])
            #expect(await connections() == 1)
            withExtendedLifetime(first) {}
            await limited.thread.shutdown()
        }
    }

    @Test func `silent connections leave connections for other clients of a server and a publisher`() async throws {
        try await MessagingFixture.with { fixture in
            let limited = try Limited(connections: 32)
            let server = try RequestServer(
                address: fixture.address(.tcp),
                thread: limited.thread,
                security: limited.curve.serving,
                logger: fixture.logger,
                handler: EchoHandler()
            )
            let running = Task { await server.run() }
            defer { running.cancel() }
            let publisher = try Publisher(
                address: fixture.address(.tcp),
                thread: limited.thread,
                security: limited.curve.serving,
                logger: fixture.logger
            )
            let (ann, bob) = (try limited.curve.client("ann"), try limited.curve.client("bob"))
            let silent = try peers(31, ZMQ_DEALER, server.boundAddress, ann)
            while await server.metrics()["connectionsEnded"]?.intValue ?? 0 < 7 { try await shortDelay() }
            while await server.metrics()["peers"]?.intValue ?? 99 > 24 { try await shortDelay() }
            _ = try await client(fixture, server, bob).call("hello")
            let others = try peers(31, ZMQ_SUB, publisher.boundAddress, ann)
            while await publisher.metrics()["connectionsEnded"] == 0 { try await shortDelay() }
            let subscriber = try RawPeer(ZMQ_SUB, publisher.boundAddress, security: bob)
            try await subscriber.subscribe("t")
            while await publisher.metrics()["subscriptions"] != 1 { try await shortDelay() }
            withExtendedLifetime((silent, others)) {}
            await limited.thread.shutdown()
        }
    }

    @Test
    func `a key has a limited number of pushers, and few are accepted while the puller is not read`() async throws {
        try await MessagingFixture.with { fixture in
            let limited = try Limited(connections: 1024)
            var limits = MessagingLimits()
            (limits.pushersPerKey, limits.inboxMessages) = (4, 8)
            let puller = try Puller(
                address: fixture.address(.tcp),
                thread: limited.thread,
                limits: limits,
                security: limited.curve.serving
            )
            func metric(_ name: String) async -> Int64 { await puller.metrics()[name]?.intValue ?? -1 }
            let (ann, bob) = (try limited.curve.client("ann"), try limited.curve.client("bob"))
            let first = try peers(6, ZMQ_PUSH, puller.boundAddress, ann)
            for peer in first { try await peer.send([[1]]) }
            while await metric("connectionsEnded") != 2 { try await shortDelay() }
            #expect(await metric("received") == 4)
            #expect(await metric("refused") == 2)
            // The inbox is full: libzmq reads ahead from four new connections at most.
            let other = try RawPeer(ZMQ_PUSH, puller.boundAddress, security: bob)
            for number in 0..<4 as Range<UInt8> { try await other.send([[number]]) }
            while await metric("received") != 8 { try await shortDelay() }
            let later = try peers(12, ZMQ_PUSH, puller.boundAddress, ann)
            while await metric("connectionsEnded") < 10 { try await shortDelay() }
            while await metric("connections") > 9 { try await shortDelay() }
            // The pushed messages arrive, and new connections are accepted again.
            var messages = puller.messages.makeAsyncIterator()
            for _ in 0..<8 { _ = await messages.next() }
            try await other.send([[9]])
            #expect(await messages.next() == PulledMessage(frames: [[9]], identity: "key:bob"))
            withExtendedLifetime((first, later)) {}
            await limited.thread.shutdown()
        }
    }

    @Test func `when there are too many topics, the client with the most topics loses a connection`() async throws {
        try await MessagingFixture.with { fixture in
            let curve = try CurveFixture()
            var limits = MessagingLimits()
            limits.topics = 200
            let publisher = try Publisher(
                address: fixture.address(.tcp),
                thread: fixture.serverThread,
                limits: limits,
                security: curve.serving,
                logger: fixture.logger
            )
            let greedy = try peers(3, ZMQ_XSUB, publisher.boundAddress, curve.client("ann"))
            for (number, peer) in greedy.enumerated() {
                for topic in 0..<50 { try await peer.send([[1] + Bytes("\(number) \(topic)".utf8)]) }
            }
            while await publisher.metrics()["subscriptions"] != 150 { try await shortDelay() }
            let honest = try RawPeer(
                ZMQ_XSUB,
                publisher.boundAddress,
                options: [(ZMQ_RECONNECT_IVL, -1)],
                security: curve.client("bob")
            )
            for topic in 0..<60 { try await honest.send([[1] + Bytes("bob \(topic)".utf8)]) }
            while await publisher.metrics()["connectionsEnded"] != 1 { try await shortDelay() }
            while await publisher.metrics()["subscriptions"] != 160 { try await shortDelay() }
            publisher.publish("bob 0", [[1]])
            #expect(try await honest.receive() == [Bytes("bob 0".utf8), [1]])
            withExtendedLifetime(greedy) {}
        }
    }

    // MARK: Memory

    @Test func `the requests of many connections leave memory for other keys, services and local clients`() async throws
    {
        try await MessagingFixture.with { fixture in
            let curve = try CurveFixture()
            var limits = MessagingLimits()
            (limits.requestBytesPerConnection, limits.requestBytes) = (1 << 20, 4 << 20)
            let capacity = ServerCapacity(limits)
            let signals = NamedSignals()
            let handler = ClosureHandler { request, _ in
                if request.method == "wait" { await signals.wait("end") }
                return Reply("done")
            }
            func server(_ name: String, _ security: SocketSecurity) throws -> RequestServer {
                try RequestServer(
                    address: fixture.address(.ipc, name),
                    thread: fixture.serverThread,
                    limits: limits,
                    security: security,
                    capacity: capacity,
                    logger: fixture.logger,
                    handler: handler
                )
            }
            let (remote, local) = (try server("remote", curve.serving), try server("local", .none))
            let running = [remote, local].map { server in Task { await server.run() } }
            func decided() async -> Int64 {
                let metrics = await remote.metrics()
                return (metrics["running"]?.intValue ?? 0) + (metrics["decodeErrors"]?["busy"]?.intValue ?? 0)
            }
            let attachment = Bytes(repeating: 7, count: 50_000)
            let bob = try client(fixture, remote, curve.client("bob"))
            var waitingPeers: [RawPeer] = []
            for name in ["ann", "carl", "dan"] {
                for peer in try peers(5, ZMQ_DEALER, remote.boundAddress, curve.client(name)) {
                    for id in 0..<20 { try await peer.send(request(JSON(id), "wait"), [attachment]) }
                    waitingPeers.append(peer)
                }
                while await decided() != Int64(20 * waitingPeers.count) { try await shortDelay() }
                if name == "ann" { _ = try await bob.call("hello", attachments: [attachment]) }
            }
            #expect(capacity.clients.requests.bytesInUse <= (2 << 20) + attachment.count)
            let large = Bytes(repeating: 7, count: 900_000)
            _ = try await fixture.client(local).call("hello", attachments: [large])
            _ = try await client(fixture, remote, curve.client("service")).call("hello", attachments: [large])
            signals.signal("end")
            for task in running { task.cancel() }
            for task in running { await task.value }
            withExtendedLifetime(waitingPeers) {}
        }
    }

    @Test func `replies that many connections do not read take limited memory, and replies to another key arrive`()
        async throws
    {
        try await MessagingFixture.with { fixture in
            let curve = try CurveFixture()
            var limits = MessagingLimits()
            (limits.outboxBytesPerConnection, limits.outboxBytes) = (1 << 20, 8 << 20)
            let bytes = 256 << 10
            let replies = Counter()
            let handler = ClosureHandler { _, _ in
                replies.add()
                return Reply([:], attachments: [Bytes(repeating: 7, count: bytes)])
            }
            // Unix sockets, because a connection over TCP keeps megabytes in the kernel.
            let server = try RequestServer(
                address: fixture.address(.ipc),
                thread: fixture.serverThread,
                limits: limits,
                security: curve.serving,
                logger: fixture.logger,
                handler: handler
            )
            let running = Task { await server.run() }
            defer { running.cancel() }
            let (ann, count) = (try curve.client("ann"), 32)
            let peers = try peers(count, ZMQ_DEALER, server.boundAddress, ann, options: [(ZMQ_RCVHWM, 1)])
            for peer in peers { for id in 0..<9 { try await peer.send(request(JSON(id), "large")) } }
            while replies.count < 9 * count { try await shortDelay() }
            /// Returns the bytes of the replies in the outbox and of the replies that wait.
            func replyBytes() async -> Int64 {
                let metrics = await server.metrics()
                return (metrics["outboxBytes"]?.intValue ?? 0) + (metrics["open"]?.intValue ?? 0) * Int64(bytes)
            }
            // The memory of refused replies is released shortly afterwards.
            for _ in 0..<1000 {
                if await replyBytes() <= 16 << 20 { break }
                try await shortDelay()
            }
            #expect(await replyBytes() <= 16 << 20)
            let reply = try await client(fixture, server, curve.client("bob")).call("large")
            #expect(reply.attachments.first?.count == bytes)
            withExtendedLifetime(peers) {}
        }
    }
}
