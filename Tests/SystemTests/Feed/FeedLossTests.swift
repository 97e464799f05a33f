import CZeroMQ
import Contracts
import Foundation
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Slow readers and many connections, within limits of time and memory, against the real processes and compared with the
/// catalog's change table.
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
            let memory = FeedChecker.resident(services)
            let count = TestEnvironment.rounds(800)
            let clock = ContinuousClock()
            let started = clock.now
            try await FeedChecker.commit(count, ids, library)
            let committed = clock.now
            try await FeedChecker.until("the fast are complete") {
                fast.allSatisfy { $0.received.current.count >= count }
            }
            let lag = clock.now - committed
            try await FeedChecker.expectComplete(fast + lagging, services, after: start)
            let grown = FeedChecker.resident(services) - memory
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
        let wanted = min(9000, TestEnvironment.rounds(2000))
        let limit = TestPaths.raiseDescriptors(to: 20_000)
        let count = min(wanted, limit - 2000)
        if count < wanted { TestPaths.report("only \(count) connections: this process may open \(limit) files") }
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            let reader = SubscriberLog(library, since: start)
            let path = services.folder.file("run/feed.sock")
            try await FeedChecker.commit(20, ids, library)
            let before = FeedChecker.resident(services)
            // A third subscribes and never reads, a third stops within the ZMTP greeting, a third sends nothing.
            let peers = try (0..<count).map { _ in try RawZMTP(path: path) }
            for (number, peer) in peers.enumerated() where number % 3 != 0 {
                if number % 3 == 1 { peer.subscribe("changes") } else { peer.send([0xFF, 0, 0]) }
            }
            try await FeedChecker.commit(100, ids, library)
            try await FeedChecker.until("the reader keeps up") { reader.received.current.count >= 120 }
            let used = FeedChecker.resident(services) - before
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
                    + "\(FeedChecker.resident(services) - before) KiB more at the end"
            )
            #expect(used < count * 128)
            withExtendedLifetime(peers) {}
        }
    }
}

/// Further losses. The tests limit neither times nor memory, so they need not run alone.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(4))))
struct FeedRepairTests {
    @Test(.spec("T-38", "P-07"))
    func `a loss on the live path in a burst is noticed at the next message or head, and repaired`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            let socket = ScriptSocket(ZMQ_SUB, services, "feed", [ZMQ_RCVHWM: 1])
            for topic in [FeedTopic.changes, FeedTopic.head] { socket.subscribe(topic) }
            // A new subscriber is sent a head.
            #expect(Self.next(socket) != nil)
            let count = 2500
            try await FeedChecker.commit(count, ids, library, lanes: 32)
            let head = try await library.currentToken().token
            var (position, received) = (start.sequence, [Int64: [UInt8]]())
            var (live, gaps, repaired) = (0, 0, 0)
            func repair(upTo sequence: Int64) async throws {
                gaps += 1
                while position < sequence {
                    let token = ChangeToken(library: start.library, sequence: position)
                    let page = try await library.changeBroker.ask(FeedSince(token: token)).result
                    for record in page.records { received[record["sequence"]?.intValue ?? 0] = record.bytes }
                    repaired += page.records.count
                    position = page.token.sequence
                }
            }
            while position < head.sequence, let (topic, json) = Self.next(socket) {
                let sequence = json["sequence"]?.intValue ?? 0
                if topic == FeedTopic.head {
                    // Everything at or below a head was sent before it: a message missing now is lost.
                    if sequence > position { try await repair(upTo: sequence) }
                } else if sequence > position {
                    let previous = json["previous"]?.intValue ?? 0
                    if previous > position { try await repair(upTo: previous) }
                    guard sequence > position else { continue }
                    var record = json.objectValue ?? [:]
                    record["previous"] = nil
                    record["token"] = nil
                    received[sequence] = JSON.object(record).bytes
                    (position, live) = (sequence, live + 1)
                }
            }
            TestPaths.report("\(count) changes in a burst: \(live) arrived, \(gaps) gaps noticed, \(repaired) repaired")
            #expect(gaps > 0 && live > 0, "nothing was lost, so the test proves nothing")
            #expect(try FeedChecker.table(services, after: start) == received)
        }
    }

    /// Returns the next message of a subscriber.
    private static func next(_ socket: ScriptSocket) -> (topic: String, json: JSON)? {
        guard let frames = socket.receive(), frames.count == 2, let json = try? JSON(parsing: frames[1]) else {
            return nil
        }
        return (String(decoding: frames[0], as: UTF8.self), json)
    }

    @Test(.spec("T-36"))
    func `history trimmed under load expires tokens before it, and readers after it stay complete`()
        async throws
    {
        try await FeedChecker.withServices(environment: ["SAFELIGHT_HISTORY_BYTES": "\(1 << 20)"]) {
            services,
            library,
            ids in
            let start = try await library.currentToken().token
            let reader = SubscriberLog(library, since: start)
            try await FeedChecker.commit(1500, ids, library)
            // The broker's memory reaches further back than the table, and a restarted broker's is empty. A restarted
            // catalog trims history at once.
            try services.restart(.changeBroker)
            try services.restart(.catalog)
            try await FeedChecker.until("history is trimmed") {
                try await FeedChecker.commit(50, ids, library)
                return try await library.currentToken().oldest.sequence > start.sequence + 100
            }
            let late = SubscriberLog(library, since: start)
            try await FeedChecker.until("the reader that was behind is notified") { late.expired.current.count == 1 }
            let again = try #require(late.expired.current.first)
            // A reader that fetches again at or after the token of the error, and follows from there, misses no change.
            let fetched = try await library.currentToken().token
            #expect(fetched.sequence >= again.sequence)
            try await FeedChecker.commit(100, ids, library)
            let head = try await library.currentToken().token
            for reader in [reader, late] {
                try await FeedChecker.until("the head has arrived") { reader.received.current[head.sequence] != nil }
                #expect(reader.problems.current == [])
            }
            #expect(reader.expired.current == [])
            #expect(reader.received.current.keys.sorted() == Array(start.sequence + 1...head.sequence))
            #expect(late.received.current.keys.sorted() == Array(again.sequence + 1...head.sequence))
            let table = try FeedChecker.table(services, after: start)
            #expect(table.count < reader.received.current.count)
            for (sequence, record) in table where reader.received.current[sequence] != record {
                Issue.record("\(sequence) differs from the table")
            }
            let error = await #expect(throws: RPCError.self) {
                try await library.changeBroker.ask(FeedSince(token: start))
            }
            #expect(error?.errorCode == .tokenExpired && error?.data["oldest"]?.stringValue != nil)
            reader.task.cancel()
            late.task.cancel()
        }
    }

    @Test func `a broker at its limit of open files loses nothing, and serves again when some are free`() async throws {
        let prlimit = try Needed.program("prlimit")
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            let reader = SubscriberLog(library, since: start)
            try await FeedChecker.commit(5, ids, library)
            try await FeedChecker.until("the reader is current") { reader.received.current.count == 5 }
            let broker = try #require(services.program(.changeBroker))
            let limited = try RunningProgram.run(
                prlimit,
                ["--pid", "\(broker.processIdentifier)", "--nofile=100:20000"]
            )
            #expect(limited.status == 0, "\(limited.errors)")
            var peers: [RawZMTP]? = try (0..<300).map { _ in try RawZMTP(path: services.folder.file("run/feed.sock")) }
            try await FeedChecker.commit(50, ids, library)
            // libzmq 4.3.4 aborts if an ipc listener may open no more files (ipc_listener.cpp); the supervisor then
            // starts the broker again, and nothing is lost.
            try await FeedChecker.until("earlier subscribers are served, or the broker has ended") {
                reader.received.current.count == 55 || !broker.isRunning
            }
            withExtendedLifetime(peers) {}
            peers = nil
            TestPaths.report(
                "at the limit of open files the broker \(broker.isRunning ? "goes on" : "ended, by libzmq")"
            )
            if !broker.isRunning { try services.start([.changeBroker]) }
            let newcomer = try services.library("newcomer")
            _ = try await newcomer.changeBroker.health(deadline: .seconds(30))
            try await FeedChecker.expectComplete([reader], services, after: start)
            await newcomer.close()
        }
    }

    @Test(.spec("S-64"))
    func `the same request three times at once over two connections has three equal responses`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            try await FeedChecker.commit(30, ids, library)
            let other = try services.library("other")
            let head = try await library.currentToken().token
            try await FeedChecker.until("the broker is current") {
                try await library.changeBroker.ask(FeedHeadRequest()).result.token == head
            }
            async let one = library.changeBroker.ask(FeedSince(token: start)).result
            async let two = other.changeBroker.ask(FeedSince(token: start)).result
            async let three = library.changeBroker.ask(FeedSince(token: start)).result
            let answers = try await [one, two, three]
            #expect(Set(answers.map(\.json)).count == 1)
            #expect(answers[0].records.count == 30)
            // The same fetch observed by both clients is one observation; after one gives it up, the other keeps it.
            var fetch = FetchDescription(.assets)
            fetch.predicate = "caption != nil"
            async let first = library.changeBroker.ask(FetchObserve(fetch: fetch)).result
            async let second = other.changeBroker.ask(FetchObserve(fetch: fetch)).result
            let observed = try await [first, second]
            #expect(observed[0].topic == observed[1].topic)
            let metrics = try await library.changeBroker.metrics()
            #expect(metrics["feed"]?["fetches"]?["count"] == 1)
            await other.close()
        }
    }
}
