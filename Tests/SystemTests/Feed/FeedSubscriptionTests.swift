import CZeroMQ
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The broker's metrics of its subscribers, and a subscriber that is written byte by byte.
private enum FeedPeer {
    /// Returns a figure of the broker's publisher; -1 if there is none.
    static func figure(_ name: String, _ library: PhotoLibrary) async throws -> Int {
        Int(try await library.changeBroker.metrics()["publisher"]?[name]?.intValue ?? -1)
    }

    /// Connects a subscriber and completes the ZMTP handshake.
    static func subscriber(_ services: SafelightFixture) throws -> RawZMTP {
        let peer = try RawZMTP(path: services.folder.file("run/feed.sock"))
        peer.greet(as: "SUB")
        // The greeting, and READY.
        let head = peer.read(64).flatMap { _ in peer.read(2) }
        #expect(peer.read(Int(try #require(head)[1])) != nil)
        return peer
    }
}

/// The limits on subscriptions at the real broker, and the treatment of subscribers beyond them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct FeedSubscriptionTests {
    @Test func `the count of subscriptions is right after readers came, left and were killed`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let topic = FeedTopic.object(ids[0])
            let steady = ScriptSocket(ZMQ_SUB, services, "feed")
            steady.subscribe(topic)
            steady.subscribe(FeedTopic.head)
            #expect(steady.receive() != nil)
            for _ in 0..<20 {
                var peers = (0..<5).map { _ in ScriptSocket(ZMQ_SUB, services, "feed") }
                for peer in peers { for name in [topic, FeedTopic.changes, FeedTopic.head] { peer.subscribe(name) } }
                let raw = try FeedPeer.subscriber(services)
                raw.send([0, UInt8(1 + topic.utf8.count), 1] + Array(topic.utf8))
                try await FeedChecker.until("all are counted") {
                    try await FeedPeer.figure("subscriptions", library) == 2 + 15 + 1
                }
                withExtendedLifetime(raw) {}
                peers = []
            }
            try await FeedChecker.until("one reader is left") {
                try await FeedPeer.figure("subscriptions", library) == 2
            }
            #expect(try await FeedPeer.figure("connections", library) == 1)
            // Its topics are still published.
            try await FeedChecker.commit(1, ids, library)
            var received: [String] = []
            while !received.contains(topic), let frames = steady.receive() {
                received.append(String(decoding: frames[0], as: UTF8.self))
            }
            #expect(received.contains(topic))
        }
    }

    @Test func `the bounds are settings, and --check prints them`() async throws {
        let environment = ["SAFELIGHT_MAX_TOPICS": "20", "SAFELIGHT_MAX_FETCH_LOG_BYTES": "1234567"]
        try await FeedChecker.withServices(environment: environment) { services, library, ids in
            let checked = try RunningProgram.run(
                "change-broker",
                ["--check", "--max-topics-per-connection", "10", "--max-fetch-bytes", "\(32 << 20)"],
                environment: services.environment
            )
            let settings = try JSON(parsing: Array(checked.output.utf8))
            let (limits, memory) = (settings["limits"], settings["memory"])
            #expect(limits?["maxTopics"] == 20 && limits?["maxTopicsPerConnection"] == 10)
            #expect(memory?["maxFetchLogBytes"] == 1_234_567 && memory?["maxFetchBytes"] == .int(32 << 20))
            for wrong in [["--max-topics", "0"], ["--max-fetch-bytes", "1"], ["--max-fetch-log-bytes", "-1"]] {
                let run = try RunningProgram.run(
                    "change-broker",
                    ["--check"] + wrong,
                    environment: services.environment
                )
                #expect(run.status != 0 && !run.errors.isEmpty, "\(wrong)")
            }
            // The connection with the most topics is closed, and the others remain.
            let peers = (0..<3).map { _ in ScriptSocket(ZMQ_XSUB, services, "feed", [ZMQ_RECONNECT_IVL: -1]) }
            for (number, count) in [6, 8, 6].enumerated() {
                for topic in 0..<count { peers[number].send("\u{1}asset.\(number) \(topic)") }
                if number < 2 {
                    let wanted = number == 0 ? 6 : 14
                    try await FeedChecker.until("they are counted") {
                        try await FeedPeer.figure("subscriptions", library) == wanted
                    }
                }
            }
            peers[2].send("\u{1}asset.one more")
            try await FeedChecker.until("one has gone") { try await FeedPeer.figure("connectionsEnded", library) == 1 }
            try await FeedChecker.until("two are left") { try await FeedPeer.figure("connections", library) == 2 }
            #expect(try await FeedPeer.figure("subscriptions", library) == 13)
        }
    }
}

/// Floods of subscriptions, during which the broker's memory and response times must stay small.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct FeedFloodTests {
    /// Returns the slowest response time of the broker while a body runs.
    private func slowest(_ library: PhotoLibrary, while body: @escaping @Sendable () -> Void) async throws -> Duration {
        let isDone = AwaitableValue<Bool>(false)
        Thread.detachNewThread {
            body()
            isDone.withLock { $0 = true }
        }
        var slowest = Duration.zero
        repeat {
            let start = ContinuousClock.now
            _ = try await library.changeBroker.ask(FeedHeadRequest(), deadline: .seconds(30))
            slowest = max(slowest, .now - start)
        } while !isDone.current
        return slowest
    }

    @Test func `a thousand topics of 64 KiB end their connection at the first, and cost the broker nothing`()
        async throws
    {
        try await FeedChecker.withServices { services, library, ids in
            let reader = SubscriberLog(library, since: try await library.currentToken().token)
            let before = FeedChecker.resident(services)
            let peer = try FeedPeer.subscriber(services)
            let slowest = try await slowest(library) {
                for number in 0..<1000 {
                    var topic = [UInt8](repeating: 120, count: 64 << 10)
                    topic.replaceSubrange(0..<8, with: Array(String(10_000_000 + number).utf8))
                    guard peer.send(RawZMTP.head(length: UInt64(topic.count + 1), more: false) + [1] + topic) else {
                        return
                    }
                }
            }
            #expect(peer.waitForEnd(seconds: 10))
            let grown = FeedChecker.resident(services) - before
            TestPaths.report("1,000 topics of 64 KiB: the broker grew by \(grown) KiB, slowest answer \(slowest)")
            #expect(grown < 32 << 10)
            #expect(slowest < .seconds(2))
            try await FeedChecker.commit(5, ids, library)
            try await FeedChecker.until("the others have received them") { reader.received.current.count == 5 }
            #expect(try await FeedPeer.figure("connectionsEnded", library) == 0, "libzmq ends it")
            #expect(services.program(.changeBroker)?.isRunning == true)
            reader.task.cancel()
        }
    }

    @Test func `a client that subscribes without end is disconnected, and delays no other`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let reader = SubscriberLog(library, since: try await library.currentToken().token)
            try await FeedChecker.until("the reader is there") {
                try await FeedPeer.figure("subscriptions", library) == 2
            }
            let before = FeedChecker.resident(services)
            let sent = AwaitableValue<Int>(0)
            let peer = try FeedPeer.subscriber(services)
            let slowest = try await slowest(library) {
                // Half a million topics of 64 bytes, as fast as the broker accepts them.
                for block in 0..<1000 {
                    var bytes: [UInt8] = []
                    for number in 0..<500 {
                        let name = String(10_000_000 + (block * 500 + number) &* 7919 % 90_000_000)
                        let topic = Array(name.utf8) + [UInt8](repeating: 120, count: 56)
                        bytes += [0, UInt8(topic.count + 1), 1] + topic
                    }
                    guard peer.send(bytes) else { return }
                    sent.withLock { $0 += 500 }
                }
            }
            #expect(peer.waitForEnd(seconds: 10))
            let grown = FeedChecker.resident(services) - before
            TestPaths.report(
                "\(sent.current) topics were sent, the broker grew by \(grown) KiB, slowest answer \(slowest)"
            )
            #expect(sent.current < 100_000)
            #expect(grown < 128 << 10)
            // Most of the time is libzmq's: it removes the topics one by one when the connection has ended.
            #expect(slowest < .seconds(2))
            #expect(try await FeedPeer.figure("connectionsEnded", library) == 1)
            try await FeedChecker.until("only the reader is left") {
                try await FeedPeer.figure("subscriptions", library) == 2
            }
            try await FeedChecker.commit(5, ids, library)
            try await FeedChecker.until("the others have received them") { reader.received.current.count == 5 }
            reader.task.cancel()
        }
    }
}
