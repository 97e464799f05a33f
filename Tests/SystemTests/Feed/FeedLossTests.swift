import Contracts
import Foundation
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Slow readers and many connections, within limits of time and memory, against the real processes and compared with
/// the catalog's change table.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(4))))
struct FeedLossTests {
    @Test(.spec("T-38"))
    func `readers that need a millisecond per change delay no other, and miss nothing`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            // Their receive queue holds almost nothing: messages that do not fit are lost on the live path and read
            // from history.
            var limits = MessagingLimits()
            limits.inboxMessages = 8
            let slow = try PhotoLibrary(
                endpoints: library.endpoints,
                client: "slow",
                limits: limits,
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            )
            let listeners = try services.library("listener")
            let start = try await library.currentToken().token
            let fast = (0..<5).map { _ in SubscriberLog(listeners, since: start) }
            let lagging = (0..<5).map { _ in SubscriberLog(slow, since: start, pause: .milliseconds(1)) }
            let requestsBefore = try await Self.requests(library)
            let memory = services.residentMemory(.changeBroker)
            let count = TestEnvironment.rounds(800)
            let clock = ContinuousClock()
            let started = clock.now
            try await FeedChecker.commit(count, ids, library)
            let committed = clock.now
            try await waitUntil("the fast are complete") {
                fast.allSatisfy { $0.received.current.count >= count }
            }
            let lag = clock.now - committed
            try await FeedChecker.expectComplete(fast + lagging, services, after: start)
            let grown = services.residentMemory(.changeBroker) - memory
            let repairs = try await Self.requests(library) - requestsBefore
            TestPaths.report(
                "\(count) changes in \(committed - started), the fast readers \(lag) behind, the slow complete after "
                    + "\(clock.now - started) with \(repairs) requests; the broker grew by \(grown) KiB"
            )
            #expect(lag < .seconds(2))
            await slow.close()
            await listeners.close()
        }
    }

    /// Returns the number of requests that the broker has answered so far.
    private static func requests(_ library: PhotoLibrary) async throws -> Int64 {
        try await library.changeBroker.metrics()["requests"]?["requests"]?.intValue ?? 0
    }

    @Test func `thousands of connections, silent and short-lived ones among them, leave readers complete`() async throws
    {
        let requested = min(9000, TestEnvironment.rounds(2000))
        let limit = TestPaths.raiseDescriptors(to: 20_000)
        let count = min(requested, limit - 2000)
        if count < requested { TestPaths.report("only \(count) connections: this process may open \(limit) files") }
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            let reader = SubscriberLog(library, since: start)
            let path = services.folder.file("run/feed.sock")
            try await FeedChecker.commit(20, ids, library)
            let before = services.residentMemory(.changeBroker)
            // A third subscribes and never reads, a third stops within the ZMTP greeting, a third sends nothing.
            let peers = try (0..<count).map { _ in try RawZMTP(path: path) }
            for (number, peer) in peers.enumerated() where number % 3 != 0 {
                if number % 3 == 1 { peer.subscribe("changes") } else { peer.send([0xFF, 0, 0]) }
            }
            try await FeedChecker.commit(100, ids, library)
            try await waitUntil("the reader keeps up") { reader.received.current.count >= 120 }
            let used = services.residentMemory(.changeBroker) - before
            let silent = peers.enumerated().filter { $0.offset % 3 != 1 }
            let ended = silent.count { $0.element.waitForEnd(seconds: 20) }
            #expect(ended == silent.count, "connections that never greet are closed after the handshake timeout")
            let clock = ContinuousClock()
            let end = clock.now + .seconds(TestEnvironment.rounds(1) > 1 ? 60 : 2)
            var churn = 0
            while clock.now < end {
                // They are closed when they go out of scope.
                for number in 0..<50 {
                    let peer = try RawZMTP(path: path)
                    if number % 2 == 0 { peer.subscribe("changes") }
                }
                churn += 50
                try await Task.sleep(for: .milliseconds(20))
            }
            try await FeedChecker.commit(50, ids, library)
            try await FeedChecker.expectComplete([reader], services, after: start)
            let health = try await library.changeBroker.health(deadline: .seconds(10))
            #expect(health.isHealthy)
            TestPaths.report(
                "\(count) connections used \(used) KiB, \(ended) silent ones closed, \(churn) short-lived ones; "
                    + "\(services.residentMemory(.changeBroker) - before) KiB more at the end"
            )
            #expect(used < count * 128)
            withExtendedLifetime(peers) {}
        }
    }
}
