import CZeroMQ
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The feed after stopped processes, floods of requests, a restored old copy, and a second broker. The tests limit
/// neither times nor memory, so they need not run alone.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(4))))
struct FeedRecoveryTests {
    @Test func `requests wait until the change-broker has reached the catalog`() async throws {
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

    @Test
    func `a suspended broker and catalog continue, and every subscriber receives all changes`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            let readers = (0..<10).map { _ in SubscriberLog(library, since: start) }
            // In the long form this exceeds the heartbeat timeout, and the catalog is stopped too.
            let pause = Duration.seconds(TestEnvironment.rounds(1) > 1 ? 20 : 2)
            for _ in 0..<min(3, TestEnvironment.rounds(1)) {
                services.program(.changeBroker)?.signal(SIGSTOP)
                try await FeedChecker.commit(100, ids, library)
                services.program(.catalog)?.signal(SIGSTOP)
                try await Task.sleep(for: pause)
                services.program(.changeBroker)?.signal(SIGCONT)
                services.program(.catalog)?.signal(SIGCONT)
                try await FeedChecker.commit(10, ids, library)
            }
            try await FeedChecker.expectComplete(readers, services, after: start)
        }
    }

    /// The limits of a broker are 10,000 observations of one identity, and 8,192 topics of one connection. The short
    /// form sets a twentieth of them.
    @Test
    func `floods of subscriptions, observations, connections and numbers out of range reach their limits`()
        async throws
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
            let refused = try await sendInvalidNumbers(library, start)
            #expect(
                refused == ["invalid_params", "invalid_params", "invalid_params", "token_expired", "token_expired"]
            )
            // More observations than one identity may have.
            let broker = try services.library("observer")
            var (unlimited, limited) = (0, 0)
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for worker in 0..<8 {
                    group.addTask { try await Self.observe(broker, stride(from: worker, to: observations, by: 8)) }
                }
                for try await isLimited in group { if isLimited { limited += 1 } else { unlimited += 1 } }
            }
            #expect(limited > 0, "\(unlimited) workers reached no limit")
            await broker.close()
            if !isLong {
                // The subscriber sends at least a thousand topics at once.
                try await waitUntil("the flood of topics has ended its connection") {
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
    private func sendInvalidNumbers(_ library: PhotoLibrary, _ token: ChangeToken) async throws -> [String] {
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
        try await waitUntil("both are current") {
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
        try await waitUntil("the token is expired") {
            events.current.contains { if case .expired = $0 { true } else { false } }
        }
        _ = try await library.perform([.deleteAssets(.init(ids: [ids[0]]))])
        let last = try await library.currentToken().token
        try await waitUntil("both continue") {
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
            let first = ScriptSocket(ZMQ_DEALER, services, "change-broker", routingID: "the same")
            #expect(ask(first, 1) == 1)
            let second = ScriptSocket(ZMQ_DEALER, services, "change-broker", routingID: "the same")
            #expect(ask(second, 2, milliseconds: 500) == nil)
            #expect(ask(first, 3) == 3)
        }
    }
}
