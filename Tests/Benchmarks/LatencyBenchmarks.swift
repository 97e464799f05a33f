import Messaging
import Foundation
import PhotoClient

/// Latency from commit to subscriber, at 1,000 real commits per second.
enum LatencyBenchmarks {
    private static let perSecond = 1000

    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "latency") else { return }
        let library = try await bench.libraries.folder(assets: 10_000, for: "latency")
        let services = try ServicesFixture(bench.paths, "latency", library: library)
        try await services.start("catalog")
        try await services.start("change-broker")
        let favourites = try await FavoriteToggler(services.client)
        let count = bench.amount(2 * perSecond, quick: 300)
        for subscribers in [10, 100] {
            guard bench.includes(group: "latency.\(subscribers)") else { continue }
            let ours = try await Subscribers(services.client.endpoints.feed.description, subscribers)
            // The peer's message has the size of a real one.
            let bytes = try await ours.measureBatch(1) { try await favourites.change() }.bytes
            let peer = try await BarePublisher(services.run, frame: frame(bytes: bytes))
            let theirs = try await Subscribers(peer.address, subscribers)
            let oursText = "catalog and change-broker, \(subscribers) subscribers, \(perSecond) commits/s"
            let peerText = "bare XPUB at \(perSecond)/s, \(bytes) bytes, the same subscribers, ipc"
            var (lost, slowest) = (0, 0.0)
            try await bench.compare(
                [
                    Comparison(
                        name: "latency.\(subscribers).p50",
                        ours: oursText,
                        peer: peerText,
                        unit: "µs",
                        smallerIsBetter: true,
                        aim: .figure(subscribers == 10 ? 500 : 1500)
                    ),
                    Comparison(
                        name: "latency.\(subscribers).p99",
                        ours: oursText,
                        peer: peerText,
                        unit: "µs",
                        smallerIsBetter: true,
                        aim: .figure(6000)
                    ),
                ],
                ours: {
                    let batch = try await ours.measureBatch(count) {
                        slowest = max(slowest, try await sendChanges(favourites, count))
                    }
                    lost += batch.lost
                    return [batch.median, batch.p99]
                },
                peer: {
                    let batch = try await theirs.measureBatch(count) { try peer.publish(count, perSecond: perSecond) }
                    return [batch.median, batch.p99]
                },
                notes: {
                    [
                        "\(lost) deliveries lost; measured from the record's date, which is set before COMMIT; "
                            + "the slowest run reached \(NumberFormat.text(Double(count) / slowest)) changes/s"
                    ]
                }
            )
            for server in [WireServer.nats, .jetStream] {
                try await compare(bench, ours, favourites, subscribers, count, frame(bytes: bytes), against: server)
            }
        }
        await services.stop()
        try await compareChained(bench)
    }

    /// Measures 2,000 subscribers of two change-brokers, the second of which follows the first, against another catalog
    /// with one change-broker and 1,000 subscribers.
    private static func compareChained(_ bench: BenchmarkContext) async throws {
        let rates = [20, 100, 200].filter { bench.includes("latency.chained.\($0)") }
        guard !rates.isEmpty else { return }
        let subscribers = 1000
        func services(_ name: String) async throws -> (ServicesFixture, FavoriteToggler) {
            let library = try await bench.libraries.folder(assets: 10_000, for: name)
            let services = try ServicesFixture(bench.paths, name, library: library)
            try await services.start("catalog")
            try await services.start("change-broker")
            return (services, try await FavoriteToggler(services.client))
        }
        let (chainedServices, chainedFavourites) = try await services("latency-chained")
        let chained = try await Subscribers(chainedServices.startChainedBroker(), subscribers)
        let direct = try await Subscribers(chainedServices.client.endpoints.feed.description, subscribers)
        let (singleServices, singleFavourites) = try await services("latency-single")
        let single = try await Subscribers(singleServices.client.endpoints.feed.description, subscribers)
        for rate in rates {
            let count = bench.amount(5 * rate, quick: 20)
            var (lost, slowest, firsts) = (0, 0.0, [Double]())
            try await bench.compare(
                ["p50", "p99"].map { percentile in
                    Comparison(
                        name: "latency.chained.\(rate).\(percentile)",
                        ours: "2,000 subscribers, half of them at a change-broker that follows the other one, "
                            + "\(rate) commits/s",
                        peer: "1,000 subscribers of one change-broker, \(rate) commits/s",
                        unit: "µs",
                        smallerIsBetter: true
                    )
                },
                pairs: min(5, bench.pairs),
                ours: {
                    var first: Subscribers.Result?
                    let second = try await chained.measureBatch(count) {
                        first = try await direct.measureBatch(count) {
                            slowest = max(slowest, try await sendChanges(chainedFavourites, count, perSecond: rate))
                        }
                    }
                    lost += (first?.lost ?? count * subscribers) + second.lost
                    firsts.append(first?.p99 ?? 0)
                    return [second.median, second.p99]
                },
                peer: {
                    let batch = try await single.measureBatch(count) {
                        _ = try await sendChanges(singleFavourites, count, perSecond: rate)
                    }
                    lost += batch.lost
                    return [batch.median, batch.p99]
                },
                notes: {
                    [
                        "\(lost) deliveries lost; A is measured at the second change-broker's subscribers; the p99 of "
                            + "the first one's is \(NumberFormat.text(SampleSummary(firsts).median)) µs; the slowest run "
                            + "reached \(NumberFormat.text(Double(count) / slowest)) changes/s"
                    ]
                }
            )
        }
        await chainedServices.stop()
        await singleServices.stop()
    }

    /// Measures the same against another product's server that publishes as many bytes to as many subscribers.
    private static func compare(
        _ bench: BenchmarkContext,
        _ ours: Subscribers,
        _ favourites: FavoriteToggler,
        _ subscribers: Int,
        _ count: Int,
        _ frame: [UInt8],
        against server: WireServer
    ) async throws {
        let name = "latency.\(subscribers).\(server.rawValue.lowercased())"
        guard bench.includes(name) else { return }
        guard let program = WireBroker.program(server) else {
            return bench.addGap(name, WireBroker.missingText(server))
        }
        let folder = try bench.paths.folder("\(server.rawValue)-rate-\(subscribers)")
        let broker = try await WireBroker(server, program: program, in: folder)
        let endpoint = broker.endpoint
        let theirs = try await Subscribers(broker, subscribers)
        try await bench.compare(
            ["p50", "p99"].map { percentile in
                Comparison(
                    name: "\(name).\(percentile)",
                    ours: "catalog and change-broker, \(subscribers) subscribers, \(perSecond) commits/s",
                    peer: "\(server.title), at \(perSecond)/s, \(frame.count) bytes, as many subscribers, tcp",
                    unit: "µs",
                    smallerIsBetter: true
                )
            },
            pairs: min(5, bench.pairs),
            ours: {
                let batch = try await ours.measureBatch(count) { _ = try await sendChanges(favourites, count) }
                return [batch.median, batch.p99]
            },
            peer: {
                let batch = try await theirs.measureBatch(count) {
                    try await runBlocking {
                        try WireBroker.publish(count, perSecond: perSecond, frame, to: server, endpoint)
                    }
                }
                return [batch.median, batch.p99]
            }
        )
    }

    /// Sends changes at a fixed rate, without waiting for the responses to earlier ones.
    ///
    /// - Returns: seconds until the last response
    private static func sendChanges(
        _ favourites: FavoriteToggler,
        _ count: Int,
        perSecond: Int = perSecond
    ) async throws -> Double {
        try await seconds {
            try await withThrowingTaskGroup(of: Void.self) { group in
                let clock = ContinuousClock()
                let start = clock.now
                for number in 0..<count {
                    let due = start + .microseconds(number * 1_000_000 / perSecond)
                    if due > clock.now { try await clock.sleep(until: due, tolerance: .zero) }
                    group.addTask { try await favourites.change() }
                }
                try await group.waitForAll()
            }
        }
    }

    /// Returns a message of a given size, with the members whose numbers a publisher overwrites.
    private static func frame(bytes: Int) -> [UInt8] {
        let head = Array(#"{"sequence":1000000000,"date":1700000000000000,"x":""#.utf8)
        return head + [UInt8](repeating: 0x78, count: max(0, bytes - head.count - 2)) + Array(#""}"#.utf8)
    }
}
