import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// An hour of mixed load, in which memory, descriptors and threads of each service must not grow.
///
/// 18 s in the short form; `SAFELIGHT_SOAK=50` is the hour. Catalog, thumbnailer and editor run all the time; brokers,
/// subscribers and workers are killed. A slope is measured within one process, because a kill resets its figures.
@Suite(.serialized, .timeLimit(.minutes(90)))
struct MixedHourTests {
    private static let isLong = TestEnvironment.rounds(1) > 1
    private static let seconds = min(3600, TestEnvironment.rounds(isLong ? 72 : 18))

    /// Returns the maximum growth of a figure over the measured part of a process's life, along its slope.
    ///
    /// In the hour that is two thirds of it, with more than 100,000 requests and a thousand connections that were
    /// opened and closed. Above the bound is a leak of 100 bytes for each request, of a descriptor for each hundredth
    /// connection, or of one for each fiftieth worker that was killed. Below it is the growth of the allocator: glibc
    /// keeps arenas for the 20 threads of a service. The short form ends before all code and all arenas have been used
    /// once; it finds leaks of two mebibytes a second, and of descriptors and threads.
    private static func bound(_ figure: ProcessLife.Figure) -> Double {
        switch figure {
        case .resident, .proportional: isLong ? 8192 : 16_384
        case .descriptors: 10
        case .threads: 4
        // A process may be missing for a short time after a kill.
        case .workers: 3
        }
    }

    @Test(.spec("T-38"))
    func `memory, descriptors and threads stay flat under a mixed load with kills, and followers complete`()
        async throws
    {
        var random = SeededRandom(named: "mixed hour")
        let keys = try TemporaryFolder("mixed-keys")
        let network = ["SAFELIGHT_LISTEN": "127.0.0.1:0", "SAFELIGHT_KEYS": keys.file("keys")]
        let services = try SafelightFixture(
            "mixed",
            environment: MixedLoad.environment.merging(network) { $1 },
            arguments: MixedLoad.arguments
        )
        #expect(try services.safelight(["keys", "server"]).status == 0)
        #expect(try services.safelight(["keys", "create", "viewer", "--access", "limited"]).status == 0)
        try services.start()
        let library = try services.library("mixed")
        let end = ContinuousClock.now + .seconds(Self.seconds)
        let load = MixedLoad(
            services: services,
            library: library,
            keys: keys.file("keys/made/viewer"),
            seed: random.next(),
            end: end
        )
        try await load.fill()
        let start = try await library.currentToken().token
        let followers = (0..<3).map { _ in RecordHashes() }
        let following = followers.map { follower in Task { try await follower.run(library, since: start) } }
        defer { for task in following { task.cancel() } }
        let watches = (0..<2).map { _ in KilledWatch(services: services, seed: random.next()) }
        let sampler = ProcessSampler(services: services)
        let sampling = Task { await sampler.run(every: .milliseconds(Self.isLong ? 1000 : 250)) }
        defer { sampling.cancel() }
        let kills = Self.kills(&random)
        let ended = AwaitableValue(false)
        let brokers = Task { try await Self.killBrokers(services, kills) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await load.run()
                sampling.cancel()
                ended.withLock { $0 = true }
            }
            for watch in watches {
                group.addTask {
                    try await watch.run(since: start, until: end) {
                        await ended.wait { $0 }
                        return try await library.currentToken().token.sequence
                    }
                }
            }
            try await group.waitForAll()
        }
        try await brokers.value
        await sampling.value

        // Every follower has every record of the table, once and in order.
        let head = try await library.currentToken().token.sequence
        let table = try RecordHashes.table(services, after: start, to: head)
        #expect(table.count == Int(head - start.sequence))
        for (number, follower) in followers.enumerated() {
            try await waitUntil("follower \(number) is complete") {
                follower.received.current.count >= table.count
            }
            #expect(follower.received.current == table && follower.problems.current == [], "follower \(number)")
        }
        for watch in watches { #expect(watch.sequences.current == Array(start.sequence + 1...head)) }
        #expect(load.problems.current == [], "\(services.logs)")
        try await Self.report(load, watches, kills.count, records: table.count)
        Self.judge(sampler.lives.current, kills: kills.count)
        await library.close()
        #expect(services.stop() == [])
        try DatabaseCheck.expectIntact(services.folder.file("library/library.sqlite"))
    }

    /// Returns the seconds after which brokers are killed: none in the last third, so that one process lives that long.
    private static func kills(_ random: inout SeededRandom) -> [Double] {
        (0..<max(1, seconds / 300)).map { _ in Double.random(in: 0.1...0.6, using: &random) * Double(seconds) }.sorted()
    }

    private static func killBrokers(_ services: SafelightFixture, _ times: [Double]) async throws {
        let beginning = ContinuousClock.now
        for time in times {
            try await Task.sleep(until: beginning + .seconds(time), clock: .continuous)
            try services.restart(.changeBroker)
        }
    }

    private static func report(_ load: MixedLoad, _ watches: [KilledWatch], _ kills: Int, records: Int) async throws {
        let done = load.done.current.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        let killed = watches.reduce(0) { $0 + $1.kills.current }
        TestPaths.report(
            "\(seconds) s, \(records) records, \(kills) kills of brokers, \(killed) of watches; "
                + done.joined(separator: ", ")
        )
        for kind in ["import", "change 0", "edit", "image 0", "live list 0", "limited client", "kill a worker"] {
            #expect(load.done.current[kind, default: 0] > 0, "\(kind) did nothing")
        }
    }

    private static func judge(_ lives: [ProcessLife], kills: Int) {
        for service in SafelightFixture.Service.allCases {
            let own = lives.filter { $0.service == service }
            let expected = service == .changeBroker ? kills + 1 : 1
            #expect(own.count <= expected, "\(service.rawValue) ended by itself")
            #expect(own.contains { $0.slope(.resident) != nil }, "\(service.rawValue) has no slope")
            for life in own {
                TestPaths.report(life.report)
                for figure in ProcessLife.Figure.allCases {
                    guard let growth = life.growth(figure) else { continue }
                    #expect(
                        growth <= bound(figure),
                        "\(service.rawValue): \(figure.rawValue) is not flat; \(life.report)"
                    )
                }
            }
        }
    }

    @Test(arguments: [(0.0, true), (0.2, true), (1.0, false), (40.0, false)])
    func `a line that rises by one descriptor each second is not flat, a noisy level one is`(rise: Double, isFlat: Bool)
    {
        var random = SeededRandom(seed: 7)
        var life = ProcessLife(service: .catalog, process: 1)
        for second in 0..<30 {
            // The warm-up, which is not measured.
            let start = second < 10 ? Double(second) * 100 : 1000
            let value = start + rise * Double(second) + Double.random(in: -2...2, using: &random)
            life.samples.append(.init(seconds: Double(second), figures: [.descriptors: value]))
        }
        #expect(((life.growth(.descriptors) ?? .infinity) <= Self.bound(.descriptors)) == isFlat)
    }
}
