import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport

/// The memory of each service with its workers, before and after some work.
enum MemoryBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "memory") else { return }
        let library = try await bench.libraries.folder(assets: 10_000, for: "memory")
        let services = try ServicesFixture(bench.paths, "memory", library: library)
        try await services.start("up")
        bench.log("measuring memory")
        for (name, process) in members(services) {
            bench.addFigure(makeFigure("memory.idle.\(name)", process, "10,000 assets, just started"))
        }
        try await useServices(bench, services)
        for (name, process) in members(services) {
            bench.addFigure(
                makeFigure(
                    "memory.worked.\(name)",
                    process,
                    "after 1,000 changes, 40 imports, 40 thumbnails, 1,000 fetched"
                )
            )
        }
        await services.stop()
    }

    private static func makeFigure(_ name: String, _ process: Int32, _ text: String) -> ReportFigure {
        let family = ProcessTable.family(of: process)
        let bytes = family.reduce(0) { $0 + ProcessTable.proportionalBytes($1) }
        return ReportFigure(
            name: name,
            text: "PSS of \(family.count) processes; \(text)",
            value: Double(bytes) / 1_048_576,
            unit: "MiB"
        )
    }

    /// Returns the names and processes of the services that `safelight up` runs.
    private static func members(_ services: ServicesFixture) -> [(String, Int32)] {
        ProcessTable.children(of: services.process("up")).map { (ProcessTable.name($0), $0) }.sorted { $0.0 < $1.0 }
    }

    private static func useServices(_ bench: BenchmarkContext, _ services: ServicesFixture) async throws {
        let favourites = try await FavoriteToggler(services.client)
        _ = try await favourites.rate(bench.amount(1_024, quick: 64), outstanding: 64)
        _ = try await services.client.assets(FetchDescription(.assets), count: 1000)
        let source = try bench.paths.folder("memory-source")
        for index in 0..<40 {
            let jpeg = TestImages.jpeg(width: 640, height: 480, seed: UInt64(1000 + index))
            try Data(jpeg).write(to: URL(fileURLWithPath: "\(source)/\(index).jpg"))
        }
        let safelight = bench.paths.program("safelight")
        try await runProgram(safelight, ["import", source, "--json", "--run", services.run])
        var fetch = FetchDescription(.assets)
        fetch.sort = [SortDescription(key: "addedDate", ascending: false)]
        let target = try bench.paths.folder("memory-thumbs")
        for asset in try await services.client.assets(fetch, count: 40).assets {
            try await runProgram(
                safelight,
                [
                    "thumb", asset.id.text, "--size", "256", "--output", "\(target)/\(asset.id).jpg", "--run",
                    services.run,
                ]
            )
        }
    }
}
