import CZeroMQ
import Foundation
import Messaging
import PhotoClient
import TestSupport

/// The cost of idle services, and the time until a started catalog answers. `--large` uses a library of
/// 1,000,000 assets.
enum IdleBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "idle") else { return }
        let assets = bench.isLarge ? 1_000_000 : 10_000
        let library = try await bench.libraries.folder(assets: assets, for: "idle")
        try await measureStart(bench, library, assets)
        try await measureIdle(bench, library, assets)
    }

    /// Measures the time from the catalog's start until it answers `health`, with its files in the system's page cache.
    private static func measureStart(_ bench: BenchmarkContext, _ library: String, _ assets: Int) async throws {
        guard bench.includes("idle.start") else { return }
        var times: [Double] = []
        for _ in 0..<bench.amount(5, quick: 1) + 1 {
            let services = try ServicesFixture(bench.paths, "idle-start", library: library)
            times.append(try await services.secondsToStartCatalog() * 1000)
            await services.stop()
        }
        bench.addFigure(
            ReportFigure(
                name: "idle.start",
                text: "the catalog of \(NumberFormat.text(Double(assets))) assets, from its start to its answer to "
                    + "health, median after one start that is not counted; aim: at most 150",
                value: SampleSummary(Array(times.dropFirst())).median,
                unit: "ms"
            )
        )
    }

    /// Measures four services with ten subscribers that receive only head messages.
    private static func measureIdle(_ bench: BenchmarkContext, _ library: String, _ assets: Int) async throws {
        guard bench.includes("idle.processor", "idle.memory") else { return }
        let services = try ServicesFixture(bench.paths, "idle", library: library)
        try await services.start("up")
        let subscribers = try await Subscribers(services.client.endpoints.feed.description, 10)
        let up = services.process("up")
        // Background work after the start does not count as idling.
        try await Task.sleep(for: .seconds(bench.amount(20, quick: 2)))
        let members = ProcessTable.children(of: up)
        let duration = bench.amount(30, quick: 3)
        bench.log("measuring \(duration) s without requests")
        func spent() -> [Double] {
            members.map { service in
                ProcessTable.family(of: service).reduce(0) { $0 + ProcessTable.threadSeconds($1) }
            }
        }
        let before = spent()
        let time = try await seconds { try await Task.sleep(for: .seconds(duration)) }
        let percentages = zip(spent(), before).map { 100 * ($0 - $1) / time }
        let bytes = ProcessTable.family(of: up).reduce(0) { $0 + ProcessTable.proportionalBytes($1) }
        let texts = zip(members, percentages).map { "\(ProcessTable.name($0)) \(NumberFormat.text($1))" }.sorted()
        bench.addFigure(
            ReportFigure(
                name: "idle.processor",
                text:
                    "\(texts.joined(separator: ", ")) % of one core, \(NumberFormat.text(Double(assets))) assets, ten "
                    + "subscribers, no requests; aim: at most 0.5 together",
                value: percentages.reduce(0, +),
                unit: "%"
            )
        )
        bench.addFigure(
            ReportFigure(
                name: "idle.memory",
                text: "PSS of the four services with their workers and of safelight up; aim: at most 120",
                value: Double(bytes) / 1_048_576,
                unit: "MiB"
            )
        )
        withExtendedLifetime(subscribers) {}
        await services.stop()
    }
}
