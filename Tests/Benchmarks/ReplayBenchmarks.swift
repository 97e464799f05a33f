import Messaging
import Contracts
import Foundation
import PhotoClient
import PhotoModel

/// Replay from the broker's memory, against a bare ROUTER and Redis streams.
extension FeedBenchmarks {
    /// The records that the readers of a comparison read.
    private struct Reading {
        let name: String
        let text: String
        let readers: Int
        /// The number of records that each of them reads.
        let records: Int
        /// The number of records in a page, and its size in bytes.
        let page: (records: Int, bytes: Int)
        let makeReader: @Sendable (BareContext) throws -> any PageReader
    }

    static func compareReplay(
        _ bench: BenchmarkContext,
        _ services: ServicesFixture,
        _ source: SyntheticCatalog,
        readers: Int
    )
        async throws
    {
        let names = ["feed.replay.\(readers)", "feed.follow.\(readers)"]
        guard names.contains(where: { bench.includes(group: $0) }) else { return }
        let client = services.client.changeBroker
        let count = bench.amount(readers > 10 ? 5000 : 20_000, quick: 1000)
        let start = source.head
        source.grow(by: count)
        try await services.waitUntilPublished(source.head)
        let library = try await client.ask(FeedHeadRequest()).result.library
        let token = ChangeToken(library: library, sequence: start).description
        let address = client.address.description
        let page = try await runBlocking {
            let reader = try SinceReader(address, token, BareContext())
            try reader.requestPage()
            return (records: try reader.receive(), bytes: reader.bytes)
        }
        guard page.records > 0 else { throw BenchmarkError("the broker replays nothing") }
        let makers: [(String, @Sendable (BareContext) throws -> any PageReader)] = [
            ("since", { try SinceReader(address, token, $0) }), ("follow", { try FollowReader(address, token, $0) }),
        ]
        for (name, (method, makeReader)) in zip(names, makers) {
            let reading = Reading(
                name: name,
                text: "feed.\(method) from the broker's memory, \(readers) bare readers",
                readers: readers,
                records: count / page.records * page.records,
                page: page,
                makeReader: makeReader
            )
            try await compareWithRouter(bench, services, reading)
            try await compareWithStreams(bench, source, reading)
        }
    }

    private static func compareWithRouter(_ bench: BenchmarkContext, _ services: ServicesFixture, _ reading: Reading)
        async throws
    {
        guard bench.includes(reading.name) else { return }
        let address = "ipc://\(services.run)/\(reading.name).sock"
        let echo = try Child(["peer-echo", "--endpoint", address, "--reply-bytes", "\(reading.page.bytes)"])
        try await echo.expect("ready")
        let records = reading.page.records
        try await bench.compare(
            [
                Comparison(
                    name: reading.name,
                    ours: reading.text,
                    peer: "bare ROUTER, pages of \(reading.page.bytes >> 10) KiB (\(records) records)",
                    unit: "deliveries/s",
                    aim: .figure(500_000)
                )
            ],
            ours: { [try await rate(reading, reading.makeReader)] },
            peer: { [try await rate(reading) { try BareReader(address, records: records, $0) }] }
        )
        withExtendedLifetime(echo) {}
    }

    private static func compareWithStreams(_ bench: BenchmarkContext, _ source: SyntheticCatalog, _ reading: Reading)
        async throws
    {
        let name = reading.name + ".redis"
        guard bench.includes(name) else { return }
        guard let program = WireBroker.program(.redis) else {
            return bench.addGap(name, WireBroker.missingText(.redis))
        }
        let broker = try await WireBroker(.redis, program: program, in: bench.paths.folder(name))
        let endpoint = broker.endpoint
        let record = source.template.bytes
        try await runBlocking { try StreamReader.fill(endpoint, record, count: reading.records) }
        let count = reading.page.records
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: reading.text,
                    peer: "Redis Streams in memory, XREAD COUNT \(count), the same records and readers, Unix sockets",
                    unit: "deliveries/s",
                    aim: .figureOrRatio(500_000, 1)
                )
            ],
            ours: { [try await rate(reading, reading.makeReader)] },
            peer: { [try await rate(reading) { _ in try StreamReader(endpoint, count: count) }] }
        )
        withExtendedLifetime(broker) {}
    }

    /// Returns the rate of readers that all run on one thread of this process, for both sides; they connect before the
    /// measurement.
    private static func rate(
        _ reading: Reading,
        _ makeReader: @escaping @Sendable (BareContext) throws -> any PageReader
    ) async throws -> Double {
        try await runBlocking {
            let context = try BareContext()
            let readers = try (0..<reading.readers).map { _ in try makeReader(context) }
            return try replayRate(readers, records: reading.records)
        }
    }
}
