import CZeroMQ
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
                // Within two seconds of the broker's return the last change has reached every subscriber.
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
            let before = FeedChecker.resident(services)
            stopped.signal(SIGSTOP)
            // Each change is a message to all and one to the subscribers of each asset: 2,600 messages of 35 MiB in all.
            // The stopped subscriber may have a thousand of them in its queue, which are less than 14 MiB.
            for round in 0..<min(40, TestEnvironment.rounds(10)) {
                let committed = try await Self.changeCaptions(of: changed, times: 10, round, library)
                try await FeedChecker.until("the others have received round \(round)") {
                    readers.allSatisfy { $0.received.current[committed.sequence] != nil }
                }
            }
            try await FeedChecker.expectComplete(readers, services, after: start)
            let grown = FeedChecker.resident(services) - before
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

    /// The example that follows all changes, changed to subscribe also to the topics in its arguments, as a program
    /// with many messages does, and to print sequences only.
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

/// Further faults of the feed: stopped processes, floods, old copies, duplicate brokers. They limit neither times nor
/// memory, so they need not run alone.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(4))))
struct FeedRecoveryTests {
    @Test func `requests wait for a change-broker's first contact with the catalog`() async throws {
        let services = try SafelightFixture("contact")
        try services.start([.changeBroker])
        let library = try services.library()
        async let head = library.changeBroker.ask(FeedHeadRequest(), deadline: .seconds(30))
        async let observed = library.changeBroker.ask(
            FetchObserve(fetch: FetchDescription(.assets)),
            deadline: .seconds(30)
        )
        try services.start([.catalog])
        let token = try await library.currentToken().token
        #expect(try await head.result.library == token.library)
        #expect(try await observed.result.topic.isEmpty == false)
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a broker and catalog that are stopped for a while continue, and every subscriber is complete`()
        async throws
    {
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            let readers = (0..<10).map { _ in SubscriberLog(library, since: start) }
            // In the long form this exceeds the heartbeat timeout, and the catalog is stopped too.
            let standstill = Duration.seconds(TestEnvironment.rounds(1) > 1 ? 20 : 2)
            for _ in 0..<min(3, TestEnvironment.rounds(1)) {
                services.program(.changeBroker)?.signal(SIGSTOP)
                try await FeedChecker.commit(100, ids, library)
                services.program(.catalog)?.signal(SIGSTOP)
                try await Task.sleep(for: standstill)
                services.program(.changeBroker)?.signal(SIGCONT)
                services.program(.catalog)?.signal(SIGCONT)
                try await FeedChecker.commit(10, ids, library)
            }
            try await FeedChecker.expectComplete(readers, services, after: start)
        }
    }

    /// The limits of a broker are 10,000 observations of one identity, and 8,192 topics of one connection. The short form
    /// has a twentieth of them, which are settings of the same checks.
    @Test func `floods of subscriptions, observations, connections and absurd numbers reach their limits`() async throws
    {
        let isLong = TestEnvironment.rounds(1) > 1
        let (topics, observations) = isLong ? (100_000, 10_100) : (5000, 600)
        let limits = isLong ? [] : ["--max-fetches-per-identity", "500", "--max-topics-per-connection", "410"]
        try await FeedChecker.withServices(arguments: [.changeBroker: limits]) { services, library, ids in
            let start = try await library.currentToken().token
            let reader = SubscriberLog(library, since: start)
            let context = zmq_ctx_new()
            defer { zmq_ctx_term(context) }
            let flood = zmq_socket(context, ZMQ_SUB)
            var zero: Int32 = 0
            zmq_setsockopt(flood, ZMQ_LINGER, &zero, MemoryLayout<Int32>.size)
            zmq_connect(flood, "ipc://" + services.folder.file("run") + "/feed.sock")
            for number in 0..<topics {
                let topic = "asset.\(number)"
                _ = topic.utf8CString.withUnsafeBufferPointer {
                    zmq_setsockopt(flood, ZMQ_SUBSCRIBE, $0.baseAddress, topic.utf8.count)
                }
            }
            let refused = try await absurd(library, start)
            #expect(
                refused == ["invalid_params", "invalid_params", "invalid_params", "token_expired", "token_expired"]
            )
            // More observations than one identity may have.
            let broker = try services.library("observer")
            var (unlimited, limited) = (0, 0)
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for lane in 0..<8 {
                    group.addTask { try await Self.observe(broker, stride(from: lane, to: observations, by: 8)) }
                }
                for try await isLimited in group { if isLimited { limited += 1 } else { unlimited += 1 } }
            }
            #expect(limited > 0, "\(unlimited) lanes reached no limit")
            await broker.close()
            if !isLong {
                // The subscriber sends at least a thousand topics at once.
                try await FeedChecker.until("the flood of topics has ended its connection") {
                    try await library.changeBroker.metrics()["publisher"]?["connectionsEnded"]?.intValue ?? 0 > 0
                }
            }
            let sockets = (0..<300).map { _ in zmq_socket(context, ZMQ_DEALER) }
            for socket in sockets {
                zmq_setsockopt(socket, ZMQ_LINGER, &zero, MemoryLayout<Int32>.size)
                zmq_connect(socket, "ipc://" + services.folder.file("run") + "/change-broker.sock")
            }
            try await FeedChecker.commit(50, ids, library)
            #expect(try await library.changeBroker.health(deadline: .seconds(10)).isHealthy)
            for socket in sockets { zmq_close(socket) }
            zmq_close(flood)
            try await FeedChecker.expectComplete([reader], services, after: start)
        }
    }

    private static func observe(_ library: PhotoLibrary, _ numbers: StrideTo<Int>) async throws -> Bool {
        for number in numbers {
            var fetch = FetchDescription(.assets)
            fetch.predicate = .string("originalFilename == \"name \(number)\"")
            do throws(RPCError) {
                _ = try await library.changeBroker.ask(FetchObserve(fetch: fetch))
            } catch {
                guard error.errorCode == .limitExceeded else { throw error }
                return true
            }
        }
        return false
    }

    /// Sends numbers that no client should send, and returns the errors.
    private func absurd(_ library: PhotoLibrary, _ token: ChangeToken) async throws -> [String] {
        let client = library.changeBroker
        var names: [String] = []
        func ask<R: Request>(_ request: R) async {
            do throws(RPCError) { _ = try await client.ask(request) } catch { names.append(error.name) }
        }
        await ask(FeedSince(token: token, limit: -1))
        await ask(FeedSince(token: token, limit: .max))
        await ask(FeedSince(token: token, topics: (0..<1001).map { "asset.\($0)" }))
        await ask(FeedSince(token: ChangeToken(library: token.library, sequence: .max)))
        await ask(FeedSince(token: ChangeToken(library: String(repeating: "9", count: 32), sequence: 1)))
        return names
    }

    @Test(.spec("P-30", "T-36"))
    func `a restored old copy has a new history: tokens expire, readers and live lists continue with it`()
        async throws
    {
        let services = try SafelightFixture("restore")
        try services.generateLibrary(assets: 30)
        let (live, copy) = (services.folder.file("library"), services.folder.file("copy"))
        try FileManager.default.copyItem(atPath: live, toPath: copy)
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let ids = try await library.assets(FetchDescription(.assets), count: 100).assets.map(\.id)
        let start = try await library.currentToken().token
        let events = AwaitableValue<[FeedEvent]>([])
        let lists = AwaitableValue<[LiveListEvent]>([])
        let reader = Task {
            for try await event in library.changes(since: start) { events.withLock { $0.append(event) } }
        }
        let lister = Task {
            for try await event in library.live(FetchDescription(.assets)) { lists.withLock { $0.append(event) } }
        }
        defer {
            reader.cancel()
            lister.cancel()
        }
        try await FeedChecker.commit(20, ids, library)
        let old = try await library.currentToken().token
        try await FeedChecker.until("both are current") {
            events.current.contains { $0.token == old } && !lists.current.isEmpty
        }
        #expect(services.stop() == [])
        // The head file, which records the newest sequence, is not replaced.
        try FileManager.default.removeItem(atPath: live + "/library.sqlite")
        for suffix in ["-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: live + "/library.sqlite" + suffix)
        }
        try FileManager.default.copyItem(atPath: copy + "/library.sqlite", toPath: live + "/library.sqlite")
        try services.start([.catalog, .changeBroker])
        let current = try await library.currentToken().token
        #expect(current.library != old.library && current.sequence >= old.sequence)
        try await FeedChecker.until("the token is expired") {
            events.current.contains { if case .expired = $0 { true } else { false } }
        }
        _ = try await library.perform([.deleteAssets(.init(ids: [ids[0]]))])
        let last = try await library.currentToken().token
        try await FeedChecker.until("both continue") {
            events.current.last?.token == last && lists.current.last?.ids.contains(ids[0]) == false
        }
        let fresh = try await library.assets(FetchDescription(.assets), count: 100).assets.map(\.id)
        #expect(lists.current.last?.ids == fresh)
        for token in [start, old] {
            let error = await #expect(throws: RPCError.self) {
                try await library.changeBroker.ask(FeedSince(token: token))
            }
            #expect(error?.errorCode == .tokenExpired)
        }
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a second broker names the running one and ends; a killed broker's socket files are replaced`()
        async throws
    {
        try await FeedChecker.withServices { services, library, ids in
            let second = try RunningProgram.run("change-broker", [], environment: services.environment, seconds: 20)
            #expect(second.status != 0 && second.status != nil)
            #expect(second.errors.contains("change-broker"), "\(second.errors)")
            try await FeedChecker.commit(5, ids, library)
            services.killHard(.changeBroker)
            try services.start([.changeBroker])
            // The broker answers before it has caught up with the catalog; a subscriber to the feed waits for that.
            var feed = library.changes(since: nil).makeAsyncIterator()
            guard case .caughtUp(let token) = try await feed.next() else {
                Issue.record("no feed")
                return
            }
            let head = try await library.changeBroker.ask(FeedHeadRequest()).result
            let current = try await library.currentToken().token
            #expect(head.token == current && token == current)
        }
    }

    @Test func `a connection that claims another's routing id receives none of its responses`() async throws {
        try await FeedChecker.withServices { services, _, _ in
            func ask(_ socket: ScriptSocket, _ id: Int, milliseconds: Int32 = 5000) -> Int64? {
                socket.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"health"}"#)
                guard let frames = socket.receive(milliseconds: milliseconds) else { return nil }
                return (try? JSON(parsing: frames[0]))?["id"]?.intValue
            }
            let first = ScriptSocket(ZMQ_DEALER, services, "change-broker", identity: "the same")
            #expect(ask(first, 1) == 1)
            let second = ScriptSocket(ZMQ_DEALER, services, "change-broker", identity: "the same")
            #expect(ask(second, 2, milliseconds: 500) == nil)
            #expect(ask(first, 3) == 3)
        }
    }
}
