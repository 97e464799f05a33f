import CZeroMQ
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The limits on subscriptions at the real broker, and the treatment of subscribers beyond them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct FeedSubscriptionTests {
    @Test
    func `the subscription count is correct after subscribers connected, disconnected and were killed`() async throws {
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
                try await waitUntil("all are counted") {
                    try await FeedPeer.figure("subscriptions", library) == 2 + 15 + 1
                }
                withExtendedLifetime(raw) {}
                peers = []
            }
            try await waitUntil("one reader is left") {
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

    @Test func `the limits are settings, and --check prints them`() async throws {
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
                    let expected = number == 0 ? 6 : 14
                    try await waitUntil("they are counted") {
                        try await FeedPeer.figure("subscriptions", library) == expected
                    }
                }
            }
            peers[2].send("\u{1}asset.one more")
            try await waitUntil("one has gone") { try await FeedPeer.figure("connectionsEnded", library) == 1 }
            try await waitUntil("two are left") { try await FeedPeer.figure("connections", library) == 2 }
            #expect(try await FeedPeer.figure("subscriptions", library) == 13)
        }
    }
}
