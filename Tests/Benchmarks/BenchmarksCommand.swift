import ArgumentParser
import Foundation
import JSONValue

/// `make bench`: every figure of the house as a ratio against a named peer or limit of the same run.
@main
struct BenchmarksCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Benchmarks",
        abstract: "Measures the house against named peers and limits.",
        subcommands: [
            MeasureCommand.self, EchoCommand.self, PublishCommand.self, SubscribeCommand.self, WireCommand.self,
        ],
        defaultSubcommand: MeasureCommand.self
    )
}

/// What is measured, in this order.
private let groups: [(name: String, measure: @Sendable (Bench) async throws -> Void)] = [
    ("memory-rates", InMemoryBenchmarks.run),
    ("thumbnails", ThumbnailBenchmarks.run),
    ("edits", EditBenchmarks.run),
    ("pictures", PictureBenchmarks.run),
    ("hits", HitBenchmarks.run),
    ("requests", RequestBenchmarks.run),
    ("commits", CommitBenchmarks.run),
    ("feed", FeedBenchmarks.run),
    ("latency", LatencyBenchmarks.run),
    ("live", LiveFetchBenchmarks.run),
    ("fetch", FetchBenchmarks.run),
    ("scale", ScaleBenchmarks.run),
    ("import", ImportBenchmarks.run),
    ("memory", MemoryBenchmarks.run),
]

struct MeasureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "measure",
        abstract: "Runs the benchmarks and prints one table."
    )

    @Option(
        help: ArgumentHelp(
            "Only benchmarks whose name begins so, as requests or fetch.first; may be given several times.",
            valueName: "name"
        )
    )
    var only: [String] = []

    @Option(help: "A/B pairs of each comparison.")
    var pairs = 10

    @Flag(help: "Short runs of two pairs: shows that everything works, measures nothing.")
    var quick = false

    @Flag(help: "Fetches from a library of 1,000,000 assets too.")
    var large = false

    @Flag(help: "Writes JSON in place of the table.")
    var json = false

    @Option(help: "Writes the table to a file too.")
    var output: String?

    @Option(
        help: ArgumentHelp(
            "Where the large libraries of scale are made, and found again; else they are made anew.",
            valueName: "folder"
        )
    )
    var libraries: String?

    @Option(help: "The folder of the built services; else beside this program.")
    var programs: String?

    @Option(help: "A folder with real photos; else ../shared/photos beside the checkout, where it is there.")
    var photos: String?

    func validate() throws {
        guard (1...1000).contains(pairs) else { throw ValidationError("--pairs is a number from 1 to 1000") }
    }

    func run() async throws {
        let bench = Bench(
            place: try Place(programs: programs, photos: photos),
            pairs: quick ? 2 : pairs,
            isQuick: quick,
            isLarge: large,
            libraries: libraries,
            only: only
        )
        for group in groups {
            do {
                try await group.measure(bench)
            } catch {
                // One that cannot run leaves the others their turn, and the table says so.
                bench.gap(group.name, "\(error)")
            }
        }
        let report = bench.report
        if let output { try report.markdown.write(toFile: output, atomically: true, encoding: .utf8) }
        print(json ? report.json.prettyText : report.markdown)
        if report.outcomes.isEmpty, report.remarks.isEmpty { throw ExitCode.failure }
    }
}
