import Foundation
import JSONValue
import PhotoModel
import TestSupport

/// Work in memory that all services do, on one thread: predicates, JSON and change records.
enum InMemoryBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard ["predicates", "json", "records"].contains(where: { bench.includes(group: $0) }) else { return }
        var random = SeededRandom(seed: 9)
        let assets = (0..<bench.amount(20_000, quick: 500)).map { RandomEntities.asset($0, using: &random) }
        try await comparePredicates(bench, assets)
        let records = assets.prefix(2_000).enumerated().map { index, asset -> ChangeRecord in
            var record = ChangeRecord(
                sequence: Int64(index + 1),
                library: String(repeating: "ab", count: 16),
                date: 1_700_000_000_000_000,
                origin: ChangeOrigin(identity: "uid:0", client: "benchmark")
            )
            var after = asset
            after.isFavorite.toggle()
            record.assets = [EntityChange(before: asset, after: after)]
            return record
        }
        try await compareJSON(bench, records)
        try await compareRecords(bench, records)
    }

    private static func comparePredicates(_ bench: BenchmarkContext, _ assets: [Asset]) async throws {
        let text = #"isFavorite == YES AND pixelWidth >= 2 AND ANY keywords ==[cd] "ete""#
        let predicate = try Predicate(format: text, of: .asset)
        func rate(_ test: @escaping @Sendable (Asset) -> Bool) -> Run {
            {
                let time = try await blockingSeconds {
                    for _ in 0..<5 { use(assets.count(where: test)) }
                }
                return [Double(5 * assets.count) / time]
            }
        }
        let folding = TextFolding.caseAndDiacritics
        try await bench.compare(
            [
                Comparison(
                    name: "predicates",
                    ours: "Predicate in memory, \(text.replacingOccurrences(of: "\"", with: "'"))",
                    peer: "the same written in Swift",
                    unit: "assets/s",
                    aim: nil
                )
            ],
            ours: rate { predicate.evaluate($0) },
            peer: rate { asset in
                asset.isFavorite && asset.pixelWidth >= 2
                    && asset.keywords.contains { folding.apply($0) == "ete" }
            }
        )
    }

    private static func compareJSON(_ bench: BenchmarkContext, _ records: [ChangeRecord]) async throws {
        let tree = JSON.array(records.map(\.json))
        let bytes = tree.bytes
        let data = Data(bytes)
        let megabytes = Double(bytes.count) / 1e6
        let text = "\(bytes.count >> 10) KiB of change records"
        func rate(_ work: @escaping @Sendable () throws -> Void) -> Run {
            { [3 * megabytes / (try await blockingSeconds { for _ in 0..<3 { try work() } })] }
        }
        try await bench.compare(
            [
                Comparison(
                    name: "json.read",
                    ours: "JSONValue, \(text)",
                    peer: "Foundation's JSONSerialization",
                    unit: "MB/s",
                    aim: nil
                )
            ],
            ours: rate { use(try JSON(parsing: bytes).arrayValue?.count ?? 0) },
            peer: rate { use((try JSONSerialization.jsonObject(with: data) as? [Any])?.count ?? 0) }
        )
        try await bench.compare(
            [
                Comparison(
                    name: "json.write",
                    ours: "JSONValue, \(text)",
                    peer: "Foundation's JSONSerialization",
                    unit: "MB/s",
                    aim: nil
                )
            ],
            ours: rate { use(tree.bytes.count) },
            peer: {
                let object = try JSONSerialization.jsonObject(with: data)
                let time = try await seconds {
                    for _ in 0..<3 { use(try JSONSerialization.data(withJSONObject: object).count) }
                }
                return [3 * megabytes / time]
            }
        )
    }

    private static func compareRecords(_ bench: BenchmarkContext, _ records: [ChangeRecord]) async throws {
        let encoded = records.map(\.bytes)
        let data = encoded.map { Data($0) }
        let size = encoded.reduce(0) { $0 + $1.count } / encoded.count
        func rate(_ work: @escaping @Sendable () throws -> Void) -> Run {
            { [Double(records.count) / (try await blockingSeconds { try work() })] }
        }
        try await bench.compare(
            [
                Comparison(
                    name: "records.decode",
                    ours: "ChangeRecord from its \(size) bytes",
                    peer: "JSONSerialization alone, without a record",
                    unit: "records/s",
                    aim: nil
                )
            ],
            ours: rate { for bytes in encoded { use(try ChangeRecord(json: JSON(parsing: bytes)).assets.count) } },
            peer: rate {
                for bytes in data {
                    use((try JSONSerialization.jsonObject(with: bytes) as? [String: Any])?.count ?? 0)
                }
            }
        )
        try await bench.compare(
            [
                Comparison(
                    name: "records.encode",
                    ours: "ChangeRecord to its bytes",
                    peer: "JSONValue alone, tree to bytes",
                    unit: "records/s",
                    aim: nil
                )
            ],
            ours: rate { for record in records { use(record.bytes.count) } },
            peer: {
                let trees = records.map(\.json)
                let time = try await blockingSeconds { for tree in trees { use(tree.bytes.count) } }
                return [Double(records.count) / time]
            }
        )
    }

    /// Does nothing, and prevents the compiler from removing work whose result is unused.
    @inline(never)
    @_optimize(none)
    private static func use(_ value: Int) {}
}
