import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel

/// The same fetches from a large and a small library, to show that the cost depends on the result and not on the size
/// of the library.
enum FetchBenchmarks {
    private struct Kind {
        let name: String
        let text: String
        var page = 100
        let fetch: FetchDescription

        init(_ name: String, _ text: String, page: Int = 100, _ build: (inout FetchDescription) -> Void) {
            self.name = name
            self.text = text
            self.page = page
            var fetch = FetchDescription(.assets)
            build(&fetch)
            self.fetch = fetch
        }
    }

    private static func kinds(keyword: String) -> [Kind] {
        [
            Kind("first", "first 100 by creation date, newest first") {
                $0.sort = [SortDescription(key: "creationDate", ascending: false)]
            },
            Kind("favourites", "first 100 favourites by creation date") {
                $0.predicate = "isFavorite == YES"
                $0.sort = [SortDescription(key: "creationDate", ascending: false)]
            },
            Kind("keyword", "first 100 with keyword \(keyword)") {
                $0.predicate = ["any": "keywords", "op": "==", "value": .string(keyword)]
                $0.sort = [SortDescription(key: "creationDate", ascending: false)]
            },
            Kind("count", "count of the library", page: 0) { _ in },
        ]
    }

    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "fetch") else { return }
        let small = try await ServedLibrary(bench, assets: 10_000)
        let keyword = try await small.rarestKeyword()
        for assets in [100_000] + (bench.isLarge ? [1_000_000] : []) {
            let large = try await ServedLibrary(bench, assets: assets)
            for kind in kinds(keyword: keyword) {
                try await compare(bench, kind, small, large)
            }
            await large.services.stop()
        }
        await small.services.stop()
    }

    private static func compare(_ bench: BenchmarkContext, _ kind: Kind, _ small: ServedLibrary, _ large: ServedLibrary)
        async throws
    {
        let rounds = bench.amount(20, quick: 3)
        func makeRun(_ served: ServedLibrary) -> Run {
            { [try await served.medianMicroseconds(kind.fetch, page: kind.page, rounds: rounds)] }
        }
        let counts = (try await small.count(kind.fetch), try await large.count(kind.fetch))
        small.resetCost()
        large.resetCost()
        try await bench.compare(
            [
                Comparison(
                    name: "fetch.\(kind.name).\(large.assets)",
                    ours: "\(kind.text), \(NumberFormat.text(Double(large.assets))) assets",
                    peer: "the same, \(NumberFormat.text(Double(small.assets))) assets",
                    unit: "µs",
                    smallerIsBetter: true,
                    aim: .ratio(1.5)
                )
            ],
            ours: makeRun(large),
            peer: makeRun(small),
            notes: {
                let ratio = ServedLibrary.costRatio(large, small).map(NumberFormat.ratio) ?? "too small to measure"
                return [
                    "\(counts.1) results against \(counts.0); processor time per fetch, large over small: \(ratio)"
                ]
            }
        )
    }
}

/// A generated library and the catalog that serves it.
final class ServedLibrary {
    let assets: Int
    let services: ServicesFixture
    private var fetches = 0
    private var spent = 0.0

    init(_ bench: BenchmarkContext, assets: Int, for purpose: String = "fetch", library: String? = nil) async throws {
        self.assets = assets
        let folder =
            if let library { library } else { try await bench.libraries.folder(assets: assets, for: purpose) }
        services = try ServicesFixture(bench.paths, "\(purpose)-\(assets)", library: folder)
        try await services.start("catalog")
    }

    /// Returns the ratio of the catalogs' processor time per fetch since ``resetCost()``; nil if it is below the
    /// resolution of the system's clock ticks.
    static func costRatio(_ first: ServedLibrary, _ second: ServedLibrary) -> Double? {
        guard min(first.spent, second.spent) >= 0.1 else { return nil }
        return (first.spent / Double(first.fetches)) / (second.spent / Double(second.fetches))
    }

    func resetCost() { (fetches, spent) = (0, 0) }

    func count(_ fetch: FetchDescription) async throws -> Int {
        try await services.client.assets(fetch, count: 0).count
    }

    /// Returns the rarest keyword of a sample of assets, for which a user could plausibly search.
    func rarestKeyword() async throws -> String {
        var counts: [String: Int] = [:]
        for word in try await services.client.assets(FetchDescription(.assets), count: 1000).assets.flatMap(\.keywords)
        {
            counts[word, default: 0] += 1
        }
        guard let rarest = counts.min(by: { ($0.value, $0.key) < ($1.value, $1.key) }) else {
            throw BenchmarkError("the library has no keywords")
        }
        return rarest.key
    }

    func medianMicroseconds(_ fetch: FetchDescription, page: Int, rounds: Int) async throws -> Double {
        var times: [Double] = []
        let catalog = services.process("catalog")
        let before = ProcessTable.processorSeconds(catalog)
        defer {
            spent += ProcessTable.processorSeconds(catalog) - before
            fetches += rounds
        }
        for _ in 0..<rounds {
            times.append(
                try await seconds { _ = try await services.client.assets(fetch, count: page) } * 1e6
            )
        }
        return SampleSummary(times).median
    }
}
