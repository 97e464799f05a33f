import Messaging
import Foundation
import PhotoClient

/// Fan-out of the change-broker over a synthetic history, against bare libzmq with the same bytes and subscribers.
enum FeedBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "feed") else { return }
        let services = try ServicesFixture(bench.paths, "feed")
        let source = try SyntheticCatalog()
        let address = services.client.endpoints.catalog
        let serving = Task { try await source.run(at: address) }
        try await services.start("change-broker")
        while source.followers == 0 { try await Task.sleep(for: .milliseconds(20)) }
        for subscribers in [10, 100] {
            try await compareFanOut(bench, services, source, subscribers: subscribers)
            for server in [WireServer.redis, .nats] {
                try await compareFanOut(bench, services, source, subscribers: subscribers, against: server)
            }
        }
        try await compareStandstill(bench, services, source)
        for readers in [10, 100] { try await compareReplay(bench, services, source, readers: readers) }
        await services.stop()
        serving.cancel()
        await source.shutdown()
    }

    // MARK: Live

    private static func compareFanOut(
        _ bench: BenchmarkContext,
        _ services: ServicesFixture,
        _ source: SyntheticCatalog,
        subscribers: Int
    ) async throws {
        let name = "feed.live.\(subscribers)"
        guard bench.includes(name) else { return }
        let peer = try await BarePublisher(services.run, frame: source.liveFrame)
        let ours = try await Subscribers(services.client.endpoints.feed.description, subscribers)
        let theirs = try await Subscribers(peer.address, subscribers)
        let records = bench.amount(20_000, quick: 500)
        let messages = bench.amount(subscribers > 10 ? 10_000 : 60_000, quick: 500)
        let broker = services.process("change-broker")
        var (lost, spent, reported) = (0, 0.0, 0)
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "change-broker over a synthetic catalog, \(subscribers) bare subscribers",
                    peer: "bare XPUB without loss, the same \(source.liveFrame.count) bytes and subscribers, ipc",
                    unit: "deliveries/s",
                    aim: .ratio(0.6)
                )
            ],
            ours: {
                let before = ProcessTable.processorSeconds(broker)
                let batch = try await ours.measureBatch(records) { source.grow(by: records) }
                lost += batch.lost
                reported += records
                spent += ProcessTable.processorSeconds(broker) - before
                return [batch.perSecond]
            },
            peer: { [try await theirs.measureBatch(messages) { try peer.publishBurst(messages) }.perSecond] },
            notes: {
                [
                    "\(lost) of \(reported * subscribers) deliveries lost on the live path; broker "
                        + "\(NumberFormat.text(spent / Double(max(1, reported)) * 1e6)) µs of processor time per record"
                ]
            }
        )
    }

    /// Measures the same against another server, which publishes the same bytes to as many subscribers.
    private static func compareFanOut(
        _ bench: BenchmarkContext,
        _ services: ServicesFixture,
        _ source: SyntheticCatalog,
        subscribers: Int,
        against server: WireServer
    ) async throws {
        let name = "feed.live.\(subscribers).\(server.rawValue)"
        guard bench.includes(name) else { return }
        guard let program = WireBroker.program(server) else {
            return bench.addGap(name, WireBroker.missingText(server))
        }
        let broker = try await WireBroker(
            server,
            program: program,
            in: bench.paths.folder("\(server.rawValue)-\(subscribers)")
        )
        let endpoint = broker.endpoint
        let ours = try await Subscribers(services.client.endpoints.feed.description, subscribers)
        let theirs = try await Subscribers(broker, subscribers)
        let records = bench.amount(20_000, quick: 500)
        // The server stores the unread messages of each subscriber in memory.
        let messages = bench.amount(subscribers > 10 ? 5000 : 20_000, quick: 500)
        let frame = source.liveFrame
        var (lost, theirLost) = (0, 0)
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "change-broker over a synthetic catalog, \(subscribers) bare subscribers, ipc",
                    peer: "\(server.title), the same \(frame.count) bytes and as many bare subscribers, "
                        + (server == .redis ? "Unix sockets" : "tcp"),
                    unit: "deliveries/s",
                    aim: server == .nats ? .ratio(1) : nil
                )
            ],
            pairs: min(5, bench.pairs),
            ours: {
                let batch = try await ours.measureBatch(records) { source.grow(by: records) }
                lost += batch.lost
                return [batch.perSecond]
            },
            peer: {
                let batch = try await theirs.measureBatch(messages) {
                    try await runBlocking { try WireBroker.publishBurst(messages, frame, to: server, endpoint) }
                }
                theirLost += batch.lost
                return [batch.perSecond]
            },
            notes: { ["lost: A \(lost), B \(theirLost)"] }
        )
    }

    /// Measures the cost of a stopped subscriber to the others: the same fan-out with it and without it.
    private static func compareStandstill(
        _ bench: BenchmarkContext,
        _ services: ServicesFixture,
        _ source: SyntheticCatalog
    )
        async throws
    {
        let name = "feed.standstill"
        guard bench.includes(name) else { return }
        let address = services.client.endpoints.feed.description
        let others = try await Subscribers(address, 10)
        let records = bench.amount(20_000, quick: 500)
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "change-broker, 10 bare subscribers beside a stopped one",
                    peer: "the same without it",
                    unit: "deliveries/s",
                    aim: .ratio(0.9)
                )
            ],
            ours: {
                let stopped = try await Subscribers(address, 1)
                stopped.suspend()
                defer { stopped.resume() }
                return [try await others.measureBatch(records) { source.grow(by: records) }.perSecond]
            },
            peer: { [try await others.measureBatch(records) { source.grow(by: records) }.perSecond] }
        )
    }
}
