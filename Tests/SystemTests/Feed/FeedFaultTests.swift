import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Faults of the feed against the real processes, within limits of time and memory: kills, and a stopped subscriber.
///
/// Afterwards each subscriber's changes are compared with the catalog's change table. Short by default;
/// `SAFELIGHT_SOAK` makes the tests long.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(4))))
struct FeedFaultTests {
    @Test(.spec("T-35", "T-38"))
    func `killing the broker in the middle of a fan-out to a hundred leaves every subscriber complete`()
        async throws
    {
        var random = SeededRandom(named: "broker kills")
        try await FeedChecker.withServices { services, library, ids in
            let listeners = try services.library("listener")
            let start = try await library.currentToken().token
            let readers = (0..<100).map { _ in SubscriberLog(listeners, since: start) }
            let kills = TestEnvironment.rounds(2)
            var slowest = Duration.zero
            for _ in 0..<kills {
                async let work: Void = FeedChecker.commit(150, ids, library)
                try await Task.sleep(for: .milliseconds(Int.random(in: 20...150, using: &random)))
                services.killHard(.changeBroker)
                try services.start([.changeBroker])
                try await work
                // Measures how long after the broker's return the last change reaches every subscriber.
                let clock = ContinuousClock()
                let returned = clock.now
                let head = try await library.currentToken().token.sequence
                while readers.contains(where: { $0.received.current[head] == nil }), clock.now < returned + .seconds(30)
                {
                    try await Task.sleep(for: .milliseconds(20))
                }
                slowest = max(slowest, clock.now - returned)
            }
            try await FeedChecker.expectComplete(readers, services, after: start)
            TestPaths.report("\(kills) kills under 100 subscribers; all were complete \(slowest) after the last commit")
            #expect(slowest < .seconds(10))
            await listeners.close()
        }
    }

    @Test func `a stopped subscriber costs the broker little memory, delays no other, and is complete later`()
        async throws
    {
        let python = try Needed.python()
        // Records in the broker's own memory are not counted here.
        try await FeedChecker.withServices(arguments: [.changeBroker: ["--ring-memory", "1"]]) {
            services,
            library,
            ids in
            let start = try await library.currentToken().token
            let changed = Array(ids.prefix(25))
            let stopped = try RunningProgram(
                python,
                ["-u", "-c", Self.followerOfAssets()] + changed.map(FeedTopic.object),
                environment: services.environment
            )
            defer { stopped.killHard() }
            _ = try await library.perform([.updateAsset(.init(id: .id(ids[0]), set: AssetPatch(caption: .some("a"))))])
            #expect(stopped.waitForOutput("\(start.sequence + 1) "), "\(stopped.errorText)")
            let listeners = try services.library("listener")
            let readers = (0..<2).map { _ in SubscriberLog(listeners, since: start) }
            let before = services.residentMemory(.changeBroker)
            stopped.signal(SIGSTOP)
            // Each change is a message to all and one to the subscribers of each asset: 2,600 messages of 35 MiB in
            // all. The stopped subscriber may have a thousand of them in its queue, which are less than 14 MiB.
            for round in 0..<min(40, TestEnvironment.rounds(10)) {
                let committed = try await Self.changeCaptions(of: changed, times: 10, round, library)
                try await waitUntil("the others have received round \(round)") {
                    readers.allSatisfy { $0.received.current[committed.sequence] != nil }
                }
            }
            try await FeedChecker.expectComplete(readers, services, after: start)
            let grown = services.residentMemory(.changeBroker) - before
            #expect(grown < 16 << 10 + 8 << 10, "the broker grew by \(grown) KiB")
            stopped.signal(SIGCONT)
            let head = try await library.currentToken().token.sequence
            #expect(stopped.waitForOutput("\n\(head) ", seconds: 60))
            let received = stopped.outputText.split(separator: "\n").compactMap { Int64($0.prefix { $0.isNumber }) }
            #expect(Array(received.drop { $0 <= start.sequence }) == Array(start.sequence + 1...head))
            TestPaths.report(
                "a stopped subscriber during \(head - start.sequence) changes: the broker grew by \(grown) KiB"
            )
            await listeners.close()
        }
    }

    /// Changes the captions of some assets in each of some transactions; a message about one asset has 7 KiB then.
    ///
    /// - Returns: the token of the last transaction
    private static func changeCaptions(
        of ids: [ObjectID],
        times: Int,
        _ round: Int,
        _ library: PhotoLibrary
    ) async throws -> ChangeToken {
        for number in 0..<times {
            let caption = "\(round) \(number) " + String(repeating: "x", count: 2600)
            _ = try await library.perform(
                ids.map { .updateAsset(.init(id: .id($0), set: AssetPatch(caption: .some(caption)))) }
            )
        }
        return try await library.currentToken().token
    }

    /// Returns the example script that follows all changes, modified to subscribe also to the topics in its arguments
    /// and to print sequences only.
    private static func followerOfAssets() throws -> String {
        let example = TestPaths.package + "/compose/examples/follow_changes.py"
        var script = try String(contentsOfFile: example, encoding: .utf8)
        let subscribing = "for topic in \"changes\", \"head\": feed.subscribe(topic)\n"
        let reading = "    message = json.loads(body)\n"
        for (part, other) in [
            (subscribing, subscribing + "for topic in sys.argv[1:]: feed.subscribe(topic)\n"),
            (reading, "    if topic.startswith(b\"asset.\"): continue\n" + reading),
            (", json.dumps(change)", ", \"\""),
        ] {
            #expect(script.contains(part), "the example no longer has \(part)")
            script = script.replacing(part, with: other)
        }
        return script
    }
}
