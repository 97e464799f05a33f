import Contracts
import Foundation
import GRDB
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// Durable changes: the real catalog against bare SQLite with the same durability.
enum CommitBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "commits") else { return }
        let library = try await bench.libraries.folder(assets: 10_000, for: "commits")
        let services = try ServicesFixture(bench.paths, "commits", library: library)
        try await services.start("catalog")
        let favourites = try await FavoriteToggler(services.client)
        let database = try BareDatabase(bench.paths.folder("bare-sqlite"))
        let catalog = services.process("catalog")

        let many = bench.amount(3_000, quick: 200)
        let (ours, cost) = makeRun(
            of: favourites,
            many,
            by: Array(repeating: services.client, count: 64),
            catalog
        )
        try await bench.compare(
            [
                Comparison(
                    name: "commits.64",
                    ours: "catalog, 64 favourite changes outstanding, group commit",
                    peer: "bare SQLite FULL, 1 row of 1 KiB a commit",
                    unit: "changes/s",
                    aim: .ratio(2)
                )
            ],
            ours: ours,
            peer: { [try await database.rate(bench.amount(3_000, quick: 200), group: 1)] },
            notes: cost
        )
        try await bench.compare(
            [
                Comparison(
                    name: "commits.64.grouped",
                    ours: "catalog, 64 favourite changes outstanding, group commit",
                    peer: "bare SQLite FULL, 16 rows of 1 KiB a commit",
                    unit: "changes/s",
                    aim: nil
                )
            ],
            ours: ours,
            peer: { [try await database.rate(bench.amount(16_000, quick: 1_600), group: 16)] }
        )
        try await measureClients(bench, services, favourites, database)
        let few = bench.amount(1_000, quick: 100)
        try await bench.compare(
            [
                Comparison(
                    name: "commits.one",
                    ours: "catalog, 1 favourite change outstanding, median time",
                    peer: "bare SQLite FULL, 1 row of 1 KiB a commit, median time",
                    unit: "µs",
                    smallerIsBetter: true,
                    aim: .ratio(3)
                )
            ],
            ours: { [try await favourites.medianMicroseconds(few)] },
            peer: { [try await database.medianMicroseconds(few)] }
        )
        try await measureBulk(bench, services, favourites, database)
        await services.stop()
    }

    /// Measures transactions that change a thousand assets each.
    private static func measureBulk(
        _ bench: BenchmarkContext,
        _ services: ServicesFixture,
        _ favourites: FavoriteToggler,
        _ database: BareDatabase
    ) async throws {
        guard bench.includes("commits.bulk") else { return }
        let catalog = services.process("catalog")
        var spent = (seconds: 0.0, assets: 0)
        try await bench.compare(
            [
                Comparison(
                    name: "commits.bulk",
                    ours: "catalog, transactions of 1,000 favourite changes, one after the other",
                    peer: "bare SQLite FULL, 1,000 rows of 1 KiB a commit",
                    unit: "assets/s",
                    aim: .figure(40_000)
                )
            ],
            ours: {
                let before = ProcessTable.processorSeconds(catalog)
                let rate = try await favourites.bulkRate(bench.amount(20, quick: 2))
                spent.seconds += ProcessTable.processorSeconds(catalog) - before
                spent.assets += bench.amount(20, quick: 2) * 1000
                return [rate]
            },
            peer: { [try await database.rate(bench.amount(40_000, quick: 4_000), group: 1000)] },
            notes: {
                let each = NumberFormat.text(spent.seconds / Double(max(1, spent.assets)) * 1e6)
                return ["catalog \(each) µs of processor time per asset"]
            }
        )
    }

    /// Measures 32 clients with a connection each; each waits for its change before it sends the next.
    private static func measureClients(
        _ bench: BenchmarkContext,
        _ services: ServicesFixture,
        _ favourites: FavoriteToggler,
        _ database: BareDatabase
    ) async throws {
        guard bench.includes("commits.32") else { return }
        let clients = try (0..<32).map { _ in try services.connect() }
        let (ours, cost) = makeRun(
            of: favourites,
            bench.amount(3_200, quick: 320),
            by: clients,
            services.process("catalog")
        )
        try await bench.compare(
            [
                Comparison(
                    name: "commits.32",
                    ours: "catalog, 32 clients, 1 favourite change outstanding each",
                    peer: "bare SQLite FULL, 1 row of 1 KiB a commit",
                    unit: "changes/s",
                    aim: .ratio(1.5)
                )
            ],
            ours: ours,
            peer: { [try await database.rate(bench.amount(3_000, quick: 200), group: 1)] },
            notes: cost
        )
        for client in clients { await client.close() }
    }

    /// Returns a run of `count` changes, and a function that reports the processor time per change of all its runs.
    private static func makeRun(
        of favourites: FavoriteToggler,
        _ count: Int,
        by clients: [PhotoLibrary],
        _ catalog: Int32
    ) -> (run: Run, cost: () -> [String]) {
        var spent = (seconds: 0.0, client: 0.0, commits: 0)
        let run: Run = {
            let before = (ProcessTable.processorSeconds(catalog), ProcessTable.processorSeconds(getpid()))
            let rate = try await favourites.rate(count, by: clients)
            spent.seconds += ProcessTable.processorSeconds(catalog) - before.0
            spent.client += ProcessTable.processorSeconds(getpid()) - before.1
            spent.commits += count
            return [rate]
        }
        let cost = {
            let each = { (seconds: Double) in NumberFormat.text(seconds / Double(max(1, spent.commits)) * 1e6) }
            return ["catalog \(each(spent.seconds)) µs of processor time per change, client \(each(spent.client)) µs"]
        }
        return (run, cost)
    }
}

/// Toggles whether assets are favorites, so that every change modifies an asset.
final class FavoriteToggler: Sendable {
    private let client: PhotoLibrary
    private let assets: [ObjectID]
    private let next = Mutex(0)

    init(_ client: PhotoLibrary) async throws {
        self.client = client
        var fetch = FetchDescription(.assets)
        fetch.predicate = "isFavorite == NO"
        assets = try await client.assets(fetch, count: 1000).assets.map(\.id)
        guard !assets.isEmpty else { throw BenchmarkError("the library has no assets") }
    }

    /// Changes the next asset.
    ///
    /// - Parameter other: the client to use instead of the default one
    func change(by other: PhotoLibrary? = nil) async throws {
        let number = next.withLock { number in
            defer { number += 1 }
            return number
        }
        let patch = AssetPatch(isFavorite: (number / assets.count).isMultiple(of: 2))
        let changes: [ChangeRequest] = [.updateAsset(.init(id: .id(assets[number % assets.count]), set: patch))]
        let outcome = try await (other ?? client).perform(changes)
        guard outcome.isChanged else { throw BenchmarkError("a change modified nothing") }
    }

    /// Toggles all assets, at most a thousand, in each of `transactions` transactions, and returns assets per second.
    func bulkRate(_ transactions: Int) async throws -> Double {
        let time = try await seconds {
            for _ in 0..<transactions {
                let number = next.withLock { number in
                    defer { number += assets.count }
                    return number
                }
                let patch = AssetPatch(isFavorite: (number / assets.count).isMultiple(of: 2))
                _ = try await client.perform(assets.map { .updateAsset(.init(id: .id($0), set: patch)) })
            }
        }
        return Double(transactions * assets.count) / time
    }

    func rate(_ count: Int, outstanding: Int) async throws -> Double {
        try await rate(count, by: Array(repeating: client, count: outstanding))
    }

    /// Sends `count` changes, and returns changes per second. Each client has one change outstanding; one that is
    /// listed several times has as many.
    func rate(_ count: Int, by clients: [PhotoLibrary]) async throws -> Double {
        let time = try await seconds {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for client in clients {
                    group.addTask { for _ in 0..<count / clients.count { try await self.change(by: client) } }
                }
                try await group.waitForAll()
            }
        }
        return Double(count / clients.count * clients.count) / time
    }

    func medianMicroseconds(_ count: Int) async throws -> Double {
        var times: [Double] = []
        for _ in 0..<count { times.append(try await seconds { try await change() } * 1e6) }
        return SampleSummary(times).median
    }
}

/// Bare SQLite in WAL mode with `synchronous=FULL`, and rows of 1 KiB.
private final class BareDatabase: Sendable {
    private let queue: DatabaseQueue

    init(_ folder: String) throws {
        queue = try DatabaseQueue(path: "\(folder)/bare.sqlite")
        try queue.writeWithoutTransaction { database in
            _ = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
            try database.execute(sql: "PRAGMA synchronous = FULL")
            try database.execute(sql: "CREATE TABLE line (id INTEGER PRIMARY KEY, bytes BLOB)")
        }
    }

    func rate(_ rows: Int, group: Int) async throws -> Double {
        let queue = queue
        let time = try await blockingSeconds {
            try queue.writeWithoutTransaction { database in
                for _ in 0..<rows / group { try Self.commit(group, database) }
            }
        }
        return Double(rows) / time
    }

    func medianMicroseconds(_ count: Int) async throws -> Double {
        let queue = queue
        let times = try await runBlocking {
            try queue.writeWithoutTransaction { database in
                try (0..<count).map { _ in
                    let start = Clocks.microseconds()
                    try Self.commit(1, database)
                    return Double(Clocks.microseconds() - start)
                }
            }
        }
        return SampleSummary(times).median
    }

    private static let row = Data(repeating: 0x78, count: 1024)

    private static func commit(_ rows: Int, _ database: Database) throws {
        let insert = try database.cachedStatement(sql: "INSERT INTO line (bytes) VALUES (?)")
        try database.execute(sql: "BEGIN IMMEDIATE")
        for _ in 0..<rows { try insert.execute(arguments: [row]) }
        try database.execute(sql: "COMMIT")
    }
}
