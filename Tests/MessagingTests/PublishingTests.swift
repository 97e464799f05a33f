import Basics
import CZeroMQ
import Foundation
import JSONValue
import Synchronization
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(5)))
struct PublishingTests {
    /// Creates a publisher, and signals that are named after the topics of its subscriptions.
    private func publisher(
        _ fixture: MessagingFixture,
        _ kind: MessagingFixture.Kind,
        limits: MessagingLimits = .init()
    ) throws -> (Publisher, NamedSignals) {
        let publisher = try Publisher(
            address: fixture.address(kind, "feed"),
            thread: fixture.serverThread,
            limits: limits,
            security: .trustedLoopback,
            logger: fixture.logger
        )
        let signals = NamedSignals()
        publisher.setOnSubscribe { topic, isSubscribed in signals.signal("\(isSubscribed ? "+" : "-")\(topic)") }
        return (publisher, signals)
    }

    @Test(arguments: MessagingFixture.Kind.allCases)
    func `a subscriber receives exactly the messages of its topics, in order`(kind: MessagingFixture.Kind) async throws
    {
        try await MessagingFixture.with { fixture in
            let (publisher, signals) = try publisher(fixture, kind)
            let subscriber = try Subscriber(
                address: publisher.boundAddress,
                thread: fixture.clientThread,
                security: .trustedLoopback,
                logger: fixture.logger
            )
            #expect(await subscriber.subscribe(["asset.1", "head", String(repeating: "x", count: 65)]).count == 1)
            await signals.wait("+asset.1")
            await signals.wait("+head")
            for number in 0..<300 {
                publisher.publish("asset.1", [[UInt8(number % 256)], [1, 2]])
                // A subscribed topic is a prefix of this topic.
                publisher.publish("asset.12", [[0]])
                publisher.publish("other", [[0]])
            }
            publisher.publish("head", [])
            publisher.publish(String(repeating: "x", count: 65), [])
            var received = 0
            for await (topic, frames) in subscriber.messages {
                if topic == "head" {
                    #expect(frames == [])
                    break
                }
                #expect(topic == "asset.1")
                #expect(frames == [[UInt8(received % 256)], [1, 2]])
                received += 1
            }
            #expect(received == 300)
            #expect(await publisher.metrics()["refused"] == 1)
            await subscriber.unsubscribe(["asset.1"])
            await signals.wait("-asset.1")
            await subscriber.close()
            for await _ in subscriber.messages {}
        }
    }

    @Test func `messages that do not fit are counted and dropped, and later ones arrive`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.inboxMessages = 10
            let (publisher, signals) = try publisher(fixture, .ipc)
            let subscriber = try Subscriber(
                address: publisher.boundAddress,
                thread: fixture.clientThread,
                limits: limits,
                security: .trustedLoopback,
                logger: fixture.logger
            )
            await subscriber.subscribe(["t"])
            await signals.wait("+t")
            for number in 0..<500 { publisher.publish("t", [[UInt8(number % 256)]]) }
            while await subscriber.metrics()["received"] != 500 { try await shortDelay() }
            #expect(await subscriber.metrics()["dropped"] == 490)
            var messages = subscriber.messages.makeAsyncIterator()
            for number in 0..<10 { #expect(await messages.next()?.frames == [[UInt8(number)]]) }
            publisher.publish("t", [[77]])
            #expect(await messages.next()?.frames == [[77]])
        }
    }

    @Test func `a publisher's own queue is bounded`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.outboxBytes = 10_000
            let (publisher, _) = try publisher(fixture, .ipc, limits: limits)
            publisher.publish("t", [Bytes(repeating: 0, count: 10_000)])
            for _ in 0..<10 { publisher.publish("t", [Bytes(repeating: 0, count: 9000)]) }
            let metrics = await publisher.metrics()
            #expect(metrics["dropped"]?.intValue ?? 0 >= 1)
        }
    }

    @Test func `a subscriber that stops reading delays neither the publisher nor other subscribers`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.publishHighWaterMark = 20
            let (publisher, signals) = try publisher(fixture, .ipc, limits: limits)
            let stalled = try RawPeer(ZMQ_SUB, publisher.boundAddress, options: [(ZMQ_RCVHWM, 1)])
            try await stalled.subscribe("t")
            await signals.wait("+t")
            let subscriber = try Subscriber(
                address: publisher.boundAddress,
                thread: fixture.clientThread,
                security: .trustedLoopback,
                logger: fixture.logger
            )
            await subscriber.subscribe(["t", "u"])
            await signals.wait("+u")
            var messages = subscriber.messages.makeAsyncIterator()
            for number in 0..<400 {
                publisher.publish("t", [Bytes(repeating: UInt8(number % 256), count: 20_000)])
                #expect(await messages.next()?.frames.first?.first == UInt8(number % 256))
            }
        }
    }

    @Test func `a subscriber that keeps up loses nothing of a burst larger than its queue`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.publishHighWaterMark = 10
            // Tests compete for CPU time.
            limits.publishWait = .seconds(20)
            let (publisher, signals) = try publisher(fixture, .ipc, limits: limits)
            let subscriber = try Subscriber(
                address: publisher.boundAddress,
                thread: fixture.clientThread,
                security: .trustedLoopback,
                logger: fixture.logger
            )
            await subscriber.subscribe(["t"])
            await signals.wait("+t")
            async let received = {
                var messages = subscriber.messages.makeAsyncIterator()
                for number in 0..<5000 {
                    let frame = await messages.next()?.frames.first
                    guard frame?.first == UInt8(number % 256) else { return number }
                }
                return 5000
            }()
            for number in 0..<5000 {
                publisher.publish("t", [Bytes(repeating: UInt8(number % 256), count: 2000)])
                if number.isMultiple(of: 100) { await publisher.waitForCapacity() }
            }
            #expect(await received == 5000)
            #expect(await publisher.metrics()["sentWithoutSome"] == 0)
        }
    }

    @Test func `a publisher waits briefly for a full queue, and then not again for a long time`() {
        var policy = SlowSubscriberPolicy(minimumWait: .milliseconds(20))
        let longest = policy.maxWait(subscriptions: 10)
        var waits = [
            policy.decideWait(at: 0, subscriptions: 10), policy.decideWait(at: longest, subscriptions: 10),
        ]
        // The queue had space again: the next wait is a new one.
        policy.didSend()
        let start = longest + 1
        waits.append(policy.decideWait(at: start, subscriptions: 10))
        let end = start + longest + 1
        waits.append(policy.decideWait(at: end, subscriptions: 10))
        waits.append(policy.decideWait(at: end + 100 * longest - 1, subscriptions: 10))
        waits.append(policy.decideWait(at: end + 100 * longest, subscriptions: 10))
        #expect(waits == [true, true, true, false, false, true])
        #expect(policy.skippedCount == 2)
        #expect(policy.maxWait(subscriptions: .max) <= 200_000)
    }

    @Test func `events report connections, and subscriptions survive a restart of the publisher`() async throws {
        try await MessagingFixture.with { fixture in
            let thread = try PollThread(name: "first")
            let address = try fixture.address(.ipc, "feed")
            let first = try Publisher(address: address, thread: thread, logger: fixture.logger)
            let subscriber = try Subscriber(address: address, thread: fixture.clientThread, logger: fixture.logger)
            await subscriber.subscribe(["t"])
            var events = subscriber.events.makeAsyncIterator()
            #expect(await events.next() == .connected)
            await thread.shutdown()
            #expect(await events.next() == .disconnected)
            let (second, signals) = try publisher(fixture, .ipc)
            #expect(await events.next() == .connected)
            await signals.wait("+t")
            second.publish("t", [[5]])
            for await (_, frames) in subscriber.messages {
                #expect(frames == [[5]])
                break
            }
            #expect(await first.metrics()["published"] == 0)
        }
    }

    @Test func `a hook that is set late is called for the topics subscribed to before`() async throws {
        try await MessagingFixture.with { fixture in
            let publisher = try Publisher(
                address: fixture.address(.ipc, "feed"),
                thread: fixture.serverThread,
                logger: fixture.logger
            )
            let peer = try RawPeer(ZMQ_XSUB, publisher.boundAddress)
            for topic in ["a", "b", "c"] { try await peer.send([[1] + Bytes(topic.utf8)]) }
            try await peer.send([[0] + Bytes("b".utf8)])
            // The publisher counts a message of an unknown kind after it has read all messages before it.
            try await peer.send([[2]])
            while await publisher.metrics()["strangeMessages"] != 1 { try await shortDelay() }
            let signals = NamedSignals()
            publisher.setOnSubscribe { topic, isSubscribed in signals.signal("\(isSubscribed ? "+" : "-")\(topic)") }
            await signals.wait("+a")
            await signals.wait("+c")
            #expect(!signals.isSignaled("+b"))
        }
    }

    @Test func `the call stack of the hook does not grow with the number of subscriptions`() async throws {
        try await MessagingFixture.with { fixture in
            let (publisher, _) = try publisher(fixture, .ipc)
            let depths = Mutex<[Int]>([])
            let last = NamedSignals()
            publisher.setOnSubscribe { topic, _ in
                depths.withLock { $0.append(Thread.callStackReturnAddresses.count) }
                last.signal(topic)
            }
            let peer = try RawPeer(ZMQ_XSUB, publisher.boundAddress)
            for number in 1...40 { try await peer.send([[1] + Bytes("t\(number)".utf8)]) }
            await last.wait("t40")
            let found = depths.withLock { $0 }
            let first = try #require(found.first)
            #expect(found.allSatisfy { $0 <= first + 4 }, "\(found)")
        }
    }

    @Test func `messages that peers send to a publisher are read and dropped`() async throws {
        try await MessagingFixture.with { fixture in
            let (publisher, signals) = try publisher(fixture, .ipc)
            let peer = try RawPeer(ZMQ_XSUB, publisher.boundAddress)
            try await peer.send([[1] + Bytes("t".utf8)])
            await signals.wait("+t")
            for length in [0, 1, 5, 255, 500] { try await peer.send([Bytes(repeating: 9, count: length)]) }
            try await peer.send([[2], [3], [4]])
            try await peer.send([[1, 0xFF, 0xFE]])
            while await publisher.metrics()["strangeMessages"]?.intValue ?? 0 < 6 { try await shortDelay() }
            publisher.publish("t", [[1]])
            #expect(try await peer.receive() == [Bytes("t".utf8), [1]])
        }
    }

    @Test(arguments: [MessagingFixture.Kind.ipc, .tcp])
    func `a connection with too many topics is ended, and others are served`(
        kind: MessagingFixture.Kind
    ) async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.topicsPerSubscriber = 100
            limits.topics = 250
            let (publisher, signals) = try publisher(fixture, kind, limits: limits)
            // No peer reconnects, so that the counts stay as they are.
            let honest = try RawPeer(ZMQ_SUB, publisher.boundAddress, options: [(ZMQ_RECONNECT_IVL, -1)])
            for number in 0..<100 { try await honest.subscribe("honest \(number)") }
            await signals.wait("+honest 99")
            func ended() async -> Int64 { await publisher.metrics()["connectionsEnded"]?.intValue ?? -1 }
            #expect(await ended() == 0)
            let greedy = try RawPeer(ZMQ_XSUB, publisher.boundAddress, options: [(ZMQ_RECONNECT_IVL, -1)])
            for number in 0..<101 { try await greedy.send([[1] + Bytes("greedy \(number)".utf8)]) }
            while await ended() != 1 { try await shortDelay() }
            while await publisher.metrics()["connections"] != 1 { try await shortDelay() }
            #expect(await publisher.metrics()["subscriptions"] == 100)
            // A topic that is too long also ends its connection.
            for (length, count) in [(65, 2), (500, 3)] {
                let peer = try RawPeer(ZMQ_XSUB, publisher.boundAddress, options: [(ZMQ_RECONNECT_IVL, -1)])
                try await peer.send([[1] + Bytes(repeating: 120, count: length)])
                while await ended() < count { try await shortDelay() }
                while await publisher.metrics()["connections"] != 1 { try await shortDelay() }
            }
            // All connections together have too many topics: the connection with the most topics is ended.
            var others: [RawPeer] = []
            for peer in 0..<3 {
                others.append(try RawPeer(ZMQ_XSUB, publisher.boundAddress, options: [(ZMQ_RECONNECT_IVL, -1)]))
                let count = peer == 1 ? 60 : 50
                for number in 0..<count { try await others[peer].send([[1] + Bytes("\(peer) \(number)".utf8)]) }
            }
            while await ended() != 4 { try await shortDelay() }
            while await publisher.metrics()["connections"] != 3 { try await shortDelay() }
            #expect(await publisher.metrics()["subscriptions"]?.intValue ?? 999 <= 250)
            for peer in others { try await peer.close() }
            try await honest.close()
            while await publisher.metrics()["subscriptions"] != 0 { try await shortDelay() }
        }
    }

    @Test(arguments: [MessagingFixture.Kind.ipc, .tcp])
    func `a reader that pauses longer than the heartbeat timeout loses nothing`(
        kind: MessagingFixture.Kind
    ) async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.inboxMessages = 1
            limits.receiveHighWaterMark = 1
            limits.sendHighWaterMark = 1
            limits.heartbeatInterval = .milliseconds(50)
            limits.heartbeatTimeout = .milliseconds(100)
            let puller = try Puller(
                address: fixture.address(kind, "edits"),
                thread: fixture.serverThread,
                limits: limits,
                security: .trustedLoopback
            )
            let pusher = try Pusher(
                address: puller.boundAddress,
                thread: fixture.clientThread,
                limits: limits,
                security: .trustedLoopback
            )
            for number in 0..<40 { try await pusher.push([[UInt8(number)], Bytes(repeating: 1, count: 40_000)]) }
            // Several heartbeats pass in this time, and cannot be answered.
            try await Task.sleep(for: .milliseconds(500))
            var messages = puller.messages.makeAsyncIterator()
            for number in 0..<40 { #expect(await messages.next()?.frames.first == [UInt8(number)]) }
        }
    }

    @Test(arguments: MessagingFixture.Kind.allCases)
    func `pushed messages arrive in order, and a slow reader blocks the pusher`(
        kind: MessagingFixture.Kind
    ) async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.inboxMessages = 4
            limits.sendHighWaterMark = 2
            // Large messages, because a connection over TCP keeps up to ten megabytes in the kernel.
            let body = Bytes(repeating: 1, count: 200_000)
            let count = 200
            limits.sendQueueBytes = 5 * body.count
            let puller = try Puller(
                address: fixture.address(kind, "edits"),
                thread: fixture.serverThread,
                limits: limits,
                security: .trustedLoopback
            )
            let pusher = try Pusher(
                address: puller.boundAddress,
                thread: fixture.clientThread,
                limits: limits,
                security: .trustedLoopback
            )
            let pushed = Counter()
            let pushing = Task {
                for number in 0..<count {
                    try await pusher.push([[UInt8(number)], body])
                    pushed.add()
                }
            }
            // Reading begins after the pusher has waited for a while with a full queue.
            var (lastCount, fullChecks) = (0, 0)
            while pushed.count < count, fullChecks < 25 {
                try await shortDelay()
                let queued = await pusher.metrics()["outboxBytes"]?.intValue ?? 0
                let isFull = queued >= Int64(limits.sendQueueBytes)
                fullChecks = isFull && pushed.count == lastCount ? fullChecks + 1 : 0
                lastCount = pushed.count
            }
            #expect(pushed.count < count, "all messages were pushed, and none was read")
            var pulled = 0
            for await message in puller.messages {
                #expect(message.frames.first == [UInt8(pulled)])
                #expect(message.frames.count == 2)
                if kind == .ipc { #expect(message.identity.hasPrefix("uid:")) }
                pulled += 1
                if pulled == count { break }
            }
            #expect(pulled == count)
            try await pushing.value
        }
    }
}

extension RawPeer {
    func subscribe(_ topic: String) async throws { try await set(ZMQ_SUBSCRIBE, Bytes(topic.utf8)) }
}
