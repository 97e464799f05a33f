import ArgumentParser
import Foundation
import JSONValue

/// `make bench`: measures the services, and compares each figure with that of a named peer or limit in the same run.
@main
struct BenchmarksCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Benchmarks",
        abstract: "Measures the services against named peers and limits.",
        subcommands: [
            MeasureCommand.self, EchoCommand.self, PublishCommand.self, SubscribeCommand.self, WireCommand.self,
            GenerateCommand.self,
        ],
        defaultSubcommand: MeasureCommand.self
    )
}

/// The benchmark groups, in the order in which they run.
private let groups: [(name: String, measure: @Sendable (BenchmarkContext) async throws -> Void)] = [
    ("memory-rates", InMemoryBenchmarks.run),
    ("thumbnails", ThumbnailBenchmarks.run),
    ("edits", EditBenchmarks.run),
    ("pictures", ImageBenchmarks.run),
    ("video", VideoBenchmarks.run),
    ("hits", HitBenchmarks.run),
    ("requests", RequestBenchmarks.run),
    ("commits", CommitBenchmarks.run),
    ("commits.postgresql", PostgreSQLBenchmarks.run),
    ("feed", FeedBenchmarks.run),
    ("latency", LatencyBenchmarks.run),
    ("live", ObservedFetchBenchmarks.run),
    ("grants", GrantBenchmarks.run),
    ("photokit", PhotoKitBenchmarks.run),
    ("fetch", FetchBenchmarks.run),
    ("pages", PageBenchmarks.run),
    ("scale", ScaleBenchmarks.run),
    ("import", ImportBenchmarks.run),
    ("storage", StorageBenchmarks.run),
    ("memory", MemoryBenchmarks.run),
    ("idle", IdleBenchmarks.run),
]

struct MeasureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "measure",
        abstract: "Runs the benchmarks and prints one table."
    )

    @Option(
        help: ArgumentHelp(
            "Only benchmarks whose name has this prefix, for example requests or fetch.first. Repeatable.",
            valueName: "name"
        )
    )
    var only: [String] = []

    @Option(help: "A/B pairs of each comparison.")
    var pairs = 10

    @Flag(help: "Short runs of two pairs, which show that everything works and measure nothing.")
    var quick = false

    @Flag(help: "Also fetch from a library of 1,000,000 assets.")
    var large = false

    @Flag(help: "Write JSON instead of the table.")
    var json = false

    @Option(help: "Also write the table to a file.")
    var output: String?

    @Option(
        help: ArgumentHelp(
            "A folder that stores the large libraries for later runs; without it they are generated in each run.",
            valueName: "folder"
        )
    )
    var libraries: String?

    @Option(help: "The folder of the built services. Default: the folder of this program.")
    var programs: String?

    @Option(help: "A folder with real photos. Default: ../shared/photos beside the checkout, if it exists.")
    var photos: String?

    func validate() throws {
        guard (1...1000).contains(pairs) else { throw ValidationError("--pairs must be from 1 to 1000") }
    }

    func run() async throws {
        let bench = BenchmarkContext(
            paths: try BenchmarkPaths(programs: programs, photos: photos),
            pairs: quick ? 2 : pairs,
            isFast: quick,
            isLarge: large,
            libraries: libraries,
            selection: only
        )
        for group in groups {
            do {
                try await group.measure(bench)
            } catch {
                // The table reports the failure, and the other groups still run.
                bench.addGap(group.name, "\(error)")
            }
        }
        let report = bench.report
        if let output { try report.markdown.write(toFile: output, atomically: true, encoding: .utf8) }
        print(json ? report.json.prettyText : report.markdown)
        if report.outcomes.isEmpty, report.figures.isEmpty { throw ExitCode.failure }
    }
}
