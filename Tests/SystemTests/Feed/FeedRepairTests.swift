import CZeroMQ
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Repairs of messages that were lost, and of history that was trimmed. The tests limit neither times nor memory, so
/// they need not run alone.
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
            try await waitUntil("history is trimmed") {
                try await FeedChecker.commit(50, ids, library)
                return try await library.currentToken().oldest.sequence > start.sequence + 100
            }
            let late = SubscriberLog(library, since: start)
            try await waitUntil("the reader that was behind is notified") { late.expired.current.count == 1 }
            let again = try #require(late.expired.current.first)
            // A reader that fetches again at or after the token of the error, and follows from there, misses no change.
            let fetched = try await library.currentToken().token
            #expect(fetched.sequence >= again.sequence)
            try await FeedChecker.commit(100, ids, library)
            let head = try await library.currentToken().token
            for reader in [reader, late] {
                try await waitUntil("the head has arrived") { reader.received.current[head.sequence] != nil }
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
            try await waitUntil("the reader is current") { reader.received.current.count == 5 }
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
            try await waitUntil("earlier subscribers are served, or the broker has ended") {
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
            try await waitUntil("the broker is current") {
                try await library.changeBroker.ask(FeedHeadRequest()).result.token == head
            }
            async let firstAnswer = library.changeBroker.ask(FeedSince(token: start)).result
            async let secondAnswer = other.changeBroker.ask(FeedSince(token: start)).result
            async let thirdAnswer = library.changeBroker.ask(FeedSince(token: start)).result
            let answers = try await [firstAnswer, secondAnswer, thirdAnswer]
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
