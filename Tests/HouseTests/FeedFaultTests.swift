import CZeroMQ
import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Faults of the feed against the real processes: kills, standstills, floods, old copies, doubles.
///
/// What each subscriber got is held to the catalog's own table of records afterwards. Short by default; `SAFELIGHT_SOAK`
/// makes it long.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(4))))
struct FeedFaultTests {
    /// One subscriber's record of what it was told.
    private struct Reader {
        let told = Recording<[Int64: [UInt8]]>([:])
        let problems = Recording<[String]>([])
        let task: Task<Void, any Error>

        init(_ library: PhotoLibrary, since token: ChangeToken) {
            task = Task { [told, problems] in
                var last = token.sequence
                for try await event in library.changes(since: token) {
                    guard case .change(let record) = event else { continue }
                    if record.sequence != last + 1 { problems.withLock { $0.append("\(last) -> \(record.sequence)") } }
                    last = record.sequence
                    told.withLock { $0[record.sequence] = record.bytes }
                }
            }
        }
    }

    private func withHouse(
        assets: Int = 50,
        _ body: (RunningHouse, PhotoLibrary, [ObjectID]) async throws -> Void
    ) async throws {
        let house = try RunningHouse("faults")
        let made = try RunningProgram.run(
            "catalog",
            ["generate", "--assets", "\(assets)"],
            environment: house.environment
        )
        #expect(made.status == 0, "\(made.errors)")
        try house.start([.catalog, .changeBroker])
        let library = try house.library()
        let ids = try await library.assets(FetchDescription(.assets), count: 1000).assets.map(\.id)
        try await body(house, library, ids)
        await library.close()
        #expect(house.stop() == [])
    }

    /// Captions, eight at a time.
    private func commit(_ count: Int, _ ids: [ObjectID], _ library: PhotoLibrary) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<8 {
                group.addTask {
                    for number in stride(from: lane, to: count, by: 8) {
                        let patch = AssetPatch(caption: .some("\(number) \(Int.random(in: 0..<1_000_000))"))
                        _ = try await library.perform([
                            .updateAsset(.init(id: .id(ids[number % ids.count]), set: patch))
                        ])
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// The catalog's own table after a moment.
    private func table(_ library: PhotoLibrary, after token: ChangeToken) async throws -> [Int64: [UInt8]] {
        var table: [Int64: [UInt8]] = [:]
        var cursor = token
        while true {
            let page = try await library.catalog.ask(ChangesSince(token: cursor, limit: 1000)).result
            for json in page.records { table[json["sequence"]?.intValue ?? 0] = json.bytes }
            guard page.hasMore else { return table }
            cursor = page.token
        }
    }

    /// Every reader has exactly the catalog's records, in order, and soon.
    private func expectComplete(_ readers: [Reader], _ library: PhotoLibrary, after token: ChangeToken) async throws {
        let table = try await table(library, after: token)
        for (number, reader) in readers.enumerated() {
            let clock = ContinuousClock()
            let end = clock.now + .seconds(60)
            while reader.told.current.count < table.count, clock.now < end {
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(reader.told.current == table, "reader \(number)")
            #expect(reader.problems.current == [], "reader \(number)")
            reader.task.cancel()
        }
    }

    @Test func `killing the broker in the middle of a fan-out to a hundred leaves every subscriber complete`()
        async throws
    {
        var random = SeededRandom(named: "broker kills")
        try await withHouse { house, library, ids in
            let listeners = try house.library("listener")
            let start = try await library.currentToken().token
            let readers = (0..<100).map { _ in Reader(listeners, since: start) }
            let kills = TestEnvironment.rounds(2)
            var slowest = Duration.zero
            for _ in 0..<kills {
                async let work: Void = commit(150, ids, library)
                try await Task.sleep(for: .milliseconds(Int.random(in: 20...150, using: &random)))
                house.killHard(.changeBroker)
                try house.start([.changeBroker])
                try await work
                // Back within two seconds of the broker's return: the last change has reached everybody.
                let clock = ContinuousClock()
                let returned = clock.now
                let head = try await library.currentToken().token.sequence
                while readers.contains(where: { $0.told.current[head] == nil }), clock.now < returned + .seconds(30) {
                    try await Task.sleep(for: .milliseconds(20))
                }
                slowest = max(slowest, clock.now - returned)
            }
            try await expectComplete(readers, library, after: start)
            TestPlace.say("\(kills) kills under 100 subscribers; all had everything \(slowest) after the last commit")
            #expect(slowest < .seconds(10))
            await listeners.close()
        }
    }

    @Test func `a subscriber that stands still costs the broker little and the others nothing, and is complete later`()
        async throws
    {
        guard let python = TestPlace.program("python3"),
            (try? RunningProgram.run(python, ["-c", "import zmq"]))?.status == 0
        else { return TestPlace.say("python3 with pyzmq is missing: no subscriber to stop") }
        try await withHouse { house, library, ids in
            let start = try await library.currentToken().token
            let script = TestPlace.package + "/compose/examples/follow_changes.py"
            let stopped = try RunningProgram(python, ["-u", script], environment: house.environment)
            defer { stopped.killHard() }
            _ = try await library.perform([.updateAsset(.init(id: .id(ids[0]), set: AssetPatch(caption: .some("a"))))])
            #expect(stopped.waitForOutput("\(start.sequence + 1) "), "\(stopped.errorText)")
            let listeners = try house.library("listener")
            let readers = (0..<5).map { _ in Reader(listeners, since: start) }
            let before = resident(house)
            stopped.signal(SIGSTOP)
            try await commit(TestEnvironment.rounds(400), ids, library)
            try await expectComplete(readers, library, after: start)
            let grown = resident(house) - before
            #expect(grown < 16 << 10 + 8 << 10, "the broker grew by \(grown) KiB")
            stopped.signal(SIGCONT)
            let head = try await library.currentToken().token.sequence
            #expect(stopped.waitForOutput("\n\(head) ", seconds: 60))
            let told = stopped.outputText.split(separator: "\n").compactMap { Int64($0.prefix { $0.isNumber }) }
            #expect(Array(told.drop { $0 <= start.sequence }) == Array(start.sequence + 1...head))
            TestPlace.say("a stopped subscriber and \(head - start.sequence) changes: the broker grew by \(grown) KiB")
            await listeners.close()
        }
    }

    private func resident(_ house: RunningHouse) -> Int {
        guard let program = house.program(.changeBroker),
            let status = try? String(contentsOfFile: "/proc/\(program.processIdentifier)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS") })
        else { return 0 }
        return Int(line.filter(\.isNumber)) ?? 0
    }

    @Test func `a broker that stands still for a while goes on, and everybody is complete`() async throws {
        try await withHouse { house, library, ids in
            let start = try await library.currentToken().token
            let readers = (0..<10).map { _ in Reader(library, since: start) }
            for _ in 0..<TestEnvironment.rounds(1) {
                house.program(.changeBroker)?.signal(SIGSTOP)
                try await commit(100, ids, library)
                try await Task.sleep(for: .seconds(3))
                house.program(.changeBroker)?.signal(SIGCONT)
            }
            try await expectComplete(readers, library, after: start)
        }
    }

    @Test func `floods of subscriptions, observations, connections and absurd numbers meet their bounds`() async throws
    {
        try await withHouse { house, library, ids in
            let start = try await library.currentToken().token
            let reader = Reader(library, since: start)
            let context = zmq_ctx_new()
            defer { zmq_ctx_term(context) }
            let flood = zmq_socket(context, ZMQ_SUB)
            var zero: Int32 = 0
            zmq_setsockopt(flood, ZMQ_LINGER, &zero, MemoryLayout<Int32>.size)
            zmq_connect(flood, "ipc://" + house.folder.file("run") + "/feed.sock")
            for number in 0..<100_000 {
                let topic = "asset.\(number)"
                _ = topic.utf8CString.withUnsafeBufferPointer {
                    zmq_setsockopt(flood, ZMQ_SUBSCRIBE, $0.baseAddress, topic.utf8.count)
                }
            }
            let refused = try await absurd(library, start)
            #expect(
                refused == ["invalid_params", "invalid_params", "invalid_params", "token_expired", "token_expired"]
            )
            // Observations beyond the bound of one identity.
            let broker = try house.library("observer")
            var (taken, limited) = (0, 0)
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for lane in 0..<8 {
                    group.addTask { try await Self.observe(broker, stride(from: lane, to: 10_100, by: 8)) }
                }
                for try await isLimited in group { if isLimited { limited += 1 } else { taken += 1 } }
            }
            #expect(limited > 0, "\(taken) lanes met no bound")
            await broker.close()
            let sockets = (0..<300).map { _ in zmq_socket(context, ZMQ_DEALER) }
            for socket in sockets {
                zmq_setsockopt(socket, ZMQ_LINGER, &zero, MemoryLayout<Int32>.size)
                zmq_connect(socket, "ipc://" + house.folder.file("run") + "/change-broker.sock")
            }
            try await commit(50, ids, library)
            #expect(try await library.changeBroker.health(deadline: .seconds(10)).isHealthy)
            for socket in sockets { zmq_close(socket) }
            zmq_close(flood)
            try await expectComplete([reader], library, after: start)
        }
    }

    private static func observe(_ library: PhotoLibrary, _ numbers: StrideTo<Int>) async throws -> Bool {
        for number in numbers {
            var fetch = FetchDescription(.assets)
            fetch.predicate = .string("originalFilename == \"name \(number)\"")
            do throws(RPCError) {
                _ = try await library.changeBroker.ask(FetchObserve(fetch: fetch))
            } catch {
                guard error.refusal == .limitExceeded else { throw error }
                return true
            }
        }
        return false
    }

    /// What is said to numbers that no client should send.
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
    func `an old copy put back is another history: tokens expire, readers and live lists go on with it`() async throws {
        let house = try RunningHouse("restore")
        let made = try RunningProgram.run("catalog", ["generate", "--assets", "30"], environment: house.environment)
        #expect(made.status == 0, "\(made.errors)")
        let (live, copy) = (house.folder.file("library"), house.folder.file("copy"))
        try FileManager.default.copyItem(atPath: live, toPath: copy)
        try house.start([.catalog, .changeBroker])
        let library = try house.library()
        let ids = try await library.assets(FetchDescription(.assets), count: 100).assets.map(\.id)
        let start = try await library.currentToken().token
        let events = Recording<[FeedEvent]>([])
        let lists = Recording<[LiveListEvent]>([])
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
        try await commit(20, ids, library)
        let old = try await library.currentToken().token
        try await until { events.current.contains { $0.token == old } && !lists.current.isEmpty }
        #expect(house.stop() == [])
        // The head file stays: it is what remembers how far the library had come.
        try FileManager.default.removeItem(atPath: live + "/library.sqlite")
        for suffix in ["-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: live + "/library.sqlite" + suffix)
        }
        try FileManager.default.copyItem(atPath: copy + "/library.sqlite", toPath: live + "/library.sqlite")
        try house.start([.catalog, .changeBroker])
        let current = try await library.currentToken().token
        #expect(current.library != old.library && current.sequence >= old.sequence)
        try await until { events.current.contains { if case .expired = $0 { true } else { false } } }
        _ = try await library.perform([.deleteAssets(.init(ids: [ids[0]]))])
        let last = try await library.currentToken().token
        try await until { events.current.last?.token == last && lists.current.last?.ids.contains(ids[0]) == false }
        let fresh = try await library.assets(FetchDescription(.assets), count: 100).assets.map(\.id)
        #expect(lists.current.last?.ids == fresh)
        for token in [start, old] {
            let error = await #expect(throws: RPCError.self) {
                try await library.changeBroker.ask(FeedSince(token: token))
            }
            #expect(error?.refusal == .tokenExpired)
        }
        await library.close()
        #expect(house.stop() == [])
    }

    private func until(_ condition: () -> Bool) async throws {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(60)
        while !condition() {
            guard clock.now < end else { throw HouseError(description: "it did not happen within a minute") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test func `a second broker says who is there and ends, and a killed one's socket files are replaced`() async throws
    {
        try await withHouse { house, library, ids in
            let second = try RunningProgram.run("change-broker", [], environment: house.environment, seconds: 20)
            #expect(second.status != 0 && second.status != nil)
            #expect(second.errors.contains("change-broker"), "\(second.errors)")
            try await commit(5, ids, library)
            house.killHard(.changeBroker)
            try house.start([.changeBroker])
            let head = try await library.changeBroker.ask(FeedHeadRequest()).result
            #expect(head.token == (try await library.currentToken().token))
        }
    }
}
