import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

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
            let before = services.residentMemory(.changeBroker)
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
            let grown = services.residentMemory(.changeBroker) - before
            TestPaths.report("1,000 topics of 64 KiB: the broker grew by \(grown) KiB, slowest answer \(slowest)")
            #expect(grown < 32 << 10)
            #expect(slowest < .seconds(2))
            try await FeedChecker.commit(5, ids, library)
            try await waitUntil("the others have received them") { reader.received.current.count == 5 }
            #expect(try await FeedPeer.figure("connectionsEnded", library) == 0, "libzmq ends it")
            #expect(services.program(.changeBroker)?.isRunning == true)
            reader.task.cancel()
        }
    }

    @Test func `a client that subscribes without end is disconnected, and delays no other`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let reader = SubscriberLog(library, since: try await library.currentToken().token)
            try await waitUntil("the reader is there") {
                try await FeedPeer.figure("subscriptions", library) == 2
            }
            let before = services.residentMemory(.changeBroker)
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
            let grown = services.residentMemory(.changeBroker) - before
            TestPaths.report(
                "\(sent.current) topics were sent, the broker grew by \(grown) KiB, slowest answer \(slowest)"
            )
            #expect(sent.current < 100_000)
            #expect(grown < 128 << 10)
            // Most of the time is libzmq's: it removes the topics one by one when the connection has ended.
            #expect(slowest < .seconds(2))
            #expect(try await FeedPeer.figure("connectionsEnded", library) == 1)
            try await waitUntil("only the reader is left") {
                try await FeedPeer.figure("subscriptions", library) == 2
            }
            try await FeedChecker.commit(5, ids, library)
            try await waitUntil("the others have received them") { reader.received.current.count == 5 }
            reader.task.cancel()
        }
    }
}
