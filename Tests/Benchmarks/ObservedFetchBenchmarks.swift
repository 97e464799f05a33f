import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel

/// The change-broker's cost of one change, by the number of observed fetches and by the size of the library.
enum ObservedFetchBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "live") else { return }
        let single = try await ObservedFetches(bench, assets: 10_000, "one")
        try await single.observe(ObservedFetches.indexed(1, of: single))
        for count in [100, 10_000] where bench.includes("live.fetches.\(count)") {
            let many = try await ObservedFetches(bench, assets: 10_000, "many-\(count)")
            try await many.observe(ObservedFetches.indexed(bench.amount(count, quick: min(count, 50)), of: many))
            try await compare(
                bench,
                "live.fetches.\(count)",
                ours: ("\(count) observed fetches found by an index", many),
                peer: ("1 observed fetch", single),
                aim: .ratio(1.3)
            )
            await many.stop()
        }
        if bench.includes("live.unindexed") {
            let unindexed = try await ObservedFetches(bench, assets: 10_000, "unindexed")
            let count = bench.amount(1000, quick: 20)
            try await unindexed.observe(ObservedFetches.unindexed(count))
            try await compare(
                bench,
                "live.unindexed",
                ours: ("\(count) observed fetches that no index finds (caption CONTAINS)", unindexed),
                peer: ("1 observed fetch", single),
                aim: nil
            )
            await unindexed.stop()
        }
        await single.stop()
        try await compareSizes(bench)
    }

    /// Measures the same fetches of the whole library over a small and a large one.
    private static func compareSizes(_ bench: BenchmarkContext) async throws {
        let assets = bench.isLarge ? 1_000_000 : 100_000
        guard bench.includes("live.library") else { return }
        let small = try await ObservedFetches(bench, assets: 10_000, "small")
        let large = try await ObservedFetches(bench, assets: assets, "large")
        for fetches in [small, large] { try await fetches.observe(ObservedFetches.whole) }
        let memory = large.memory - large.memoryBefore
        let metrics = try await large.metrics()
        let rows = metrics["rows"]?.intValue ?? 0
        let counted = NumberFormat.text(Double(metrics["bytes"]?.intValue ?? 0) / Double(max(1, rows)))
        bench.addFigure(
            ReportFigure(
                name: "live.memory",
                text:
                    "memory of the broker per object of \(ObservedFetches.whole.count) whole-library lists of "
                    + "\(assets) assets; by the broker's own count \(counted)",
                value: Double(memory) / Double(max(1, rows)),
                unit: "bytes"
            )
        )
        try await compare(
            bench,
            "live.library",
            ours: ("\(ObservedFetches.whole.count) whole-library lists over \(assets) assets", large),
            peer: ("the same over 10,000 assets", small),
            aim: .ratio(1.3)
        )
        await small.stop()
        await large.stop()
    }

    private static func compare(
        _ bench: BenchmarkContext,
        _ name: String,
        ours: (text: String, services: ObservedFetches),
        peer: (text: String, services: ObservedFetches),
        aim: ComparisonTarget?
    ) async throws {
        let changes = bench.amount(2000, quick: 50)
        ours.services.resetTotals()
        peer.services.resetTotals()
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "broker, one change of a favourite, " + ours.text,
                    peer: peer.text,
                    unit: "µs of processor time per change",
                    smallerIsBetter: true,
                    aim: aim
                )
            ],
            ours: { [try await ours.services.cost(of: changes)] },
            peer: { [try await peer.services.cost(of: changes)] },
            notes: { ["A: \(ours.services.countsText)", "B: \(peer.services.countsText)"] }
        )
    }
}

/// A catalog and a broker with observed fetches.
private final class ObservedFetches {
    private let services: ServicesFixture
    private let favourites: FavoriteToggler
    private let sample: [Asset]
    private(set) var memoryBefore = 0
    /// The records received, fetches examined, predicates evaluated and messages sent since ``resetTotals()``.
    private var totals = (records: 0.0, candidates: 0.0, predicates: 0.0, messages: 0.0)

    init(_ bench: BenchmarkContext, assets: Int, _ name: String) async throws {
        let library = try await bench.libraries.folder(assets: assets, for: "live-\(name)")
        services = try ServicesFixture(bench.paths, "live-\(name)", library: library)
        try await services.start("catalog")
        try await services.start("change-broker")
        favourites = try await FavoriteToggler(services.client)
        sample = try await services.client.assets(FetchDescription(.assets), count: 1000).assets
        memoryBefore = memory
    }

    func stop() async { await services.stop() }

    private var broker: Int32 { services.process("change-broker") }

    var memory: Int { ProcessTable.proportionalBytes(broker) }

    func metrics() async throws -> JSONObject {
        try await services.client.changeBroker.metrics()["feed"]?["fetches"]?.objectValue ?? [:]
    }

    // MARK: Fetches

    /// Returns fetches of mixed kinds, each with a different value, so that the number of fetches that one asset
    /// affects does not grow with `count`.
    static func indexed(_ count: Int, of services: ObservedFetches) -> [FetchDescription] {
        (0..<count).map { number in
            var fetch = FetchDescription(.assets)
            switch number % 5 {
            case 0: fetch.ids = [services.sample[number / 5 % services.sample.count].id]
            case 1: fetch.predicate = .string("originalFilename == \"image \(number).jpg\"")
            case 2: fetch.predicate = .string("ANY keywords == \"word \(number)\"")
            case 3: fetch.predicate = .string("pixelWidth BETWEEN {\(number * 10), \(number * 10 + 9)}")
            default: fetch.predicate = .string("burstIdentifier == \"burst \(number)\" AND isFavorite == TRUE")
            }
            fetch.sort = [SortDescription(key: "creationDate", ascending: number % 2 == 0)]
            // Fetches by identifier repeat beyond the sample; the limit makes them distinct.
            fetch.limit = 10 + number
            return fetch
        }
    }

    static func unindexed(_ count: Int) -> [FetchDescription] {
        (0..<count).map { number in
            var fetch = FetchDescription(.assets)
            fetch.predicate = .string("caption CONTAINS[cd] \"words \(number)\"")
            return fetch
        }
    }

    /// Fetches of the whole library, with different orders, offsets and limits.
    static let whole: [FetchDescription] = (0..<4).map { number in
        var fetch = FetchDescription(.assets)
        fetch.sort = [SortDescription(key: number < 2 ? "creationDate" : "addedDate", ascending: number % 2 == 0)]
        if number == 3 { fetch.limit = 100 }
        return fetch
    }

    func observe(_ fetches: [FetchDescription]) async throws {
        let broker = services.client.changeBroker
        try await withThrowingTaskGroup(of: Void.self) { group in
            for first in 0..<4 {
                group.addTask {
                    for number in stride(from: first, to: fetches.count, by: 4) {
                        _ = try await broker.ask(FetchObserve(fetch: fetches[number]), deadline: .seconds(120))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    // MARK: Cost

    func resetTotals() { totals = (0, 0, 0, 0) }

    /// Returns the broker's processor time per change, in microseconds.
    func cost(of changes: Int) async throws -> Double {
        try await waitUntilPublished()
        let (before, time) = (try await metrics(), ProcessTable.threadSeconds(broker))
        _ = try await favourites.rate(changes, outstanding: 8)
        try await waitUntilPublished()
        // The time is read before the metrics, whose cost grows with the number of fetches.
        let end = ProcessTable.threadSeconds(broker)
        let after = try await metrics()
        func increase(_ name: String) -> Double {
            Double((after[name]?.intValue ?? 0) - (before[name]?.intValue ?? 0))
        }
        totals.records += increase("records")
        totals.candidates += increase("candidates")
        totals.predicates += increase("predicatesEvaluated")
        totals.messages += increase("messages")
        guard after["broken"] == 0 else { throw BenchmarkError("the broker gave up an observed fetch") }
        return (end - time) / Double(changes) * 1e6
    }

    private func waitUntilPublished() async throws {
        try await services.waitUntilPublished(services.client.currentToken().token.sequence)
    }

    var countsText: String {
        func each(_ number: Double) -> String { NumberFormat.text(number / max(1, totals.records)) }
        return "\(each(totals.candidates)) fetches examined, \(each(totals.predicates)) predicates evaluated, "
            + "\(each(totals.messages)) messages a change"
    }
}
