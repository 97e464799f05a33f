import Basics
import ArgumentParser
import Catalog
import Foundation
import PhotoModel
import TestSupport

/// `Benchmarks generate`: creates a library of any size without pixels, for benchmarks and tests.
struct GenerateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "generate",
        abstract: "Creates a library with plausible metadata and no pixels."
    )

    @Option(help: "The folder of the new library.")
    var library: String

    @Option(help: "The number of assets.")
    var assets: Int

    @Option(help: "The random seed; the same seed creates the same library.")
    var seed: UInt64 = 1

    @Option(help: "The number of albums; about half of the assets are in an album.")
    var albums = 0

    @Option(parsing: .upToNextOption, help: "The sizes of additional albums.")
    var albumSizes: [Int] = []

    @Option(help: "The percentage of assets in the trash.")
    var trash = 0.0

    func validate() throws {
        guard (0...100_000_000).contains(assets), (0...100_000).contains(albums), (0...100).contains(trash) else {
            throw ValidationError("--assets is at most 100000000, --albums at most 100000 and --trash at most 100")
        }
        guard albumSizes.count <= 16, albumSizes.allSatisfy({ (0...assets).contains($0) }) else {
            throw ValidationError("--album-sizes takes at most 16 numbers, none larger than --assets")
        }
        guard library.hasPrefix("/") else { throw ValidationError("--library must be an absolute path") }
    }

    func run() async throws {
        let clock = ContinuousClock()
        let start = clock.now
        var lastProgress = start
        func rate(_ count: Int) -> Int { Int(Double(count) / max(1e-6, (clock.now - start) / .seconds(1))) }
        var random = SeededRandom(seed: seed ^ 0x5AFE_1167)
        let builder = try await LibraryBuilder(
            folder: library,
            server: ProcessInfo.processInfo.environment["SAFELIGHT_STORE"],
            now: 1_262_304_000_000_000,
            newHistoryID: random.nextHexadecimal()
        )
        let source = BatchSource(
            LibraryGenerator(
                assets: assets,
                albums: albums,
                sizes: albumSizes,
                trash: trash,
                seed: seed,
                library: builder.historyID,
                root: builder.root
            )
        )
        var transactions = 0
        var batch = await source.next()
        while let current = batch {
            // The next transaction is generated while this one is written.
            async let following = source.next()
            try await builder.append(current.record, bytes: current.bytes)
            transactions += 1
            if clock.now - lastProgress >= .milliseconds(500) {
                lastProgress = clock.now
                printProgress("\(current.assetsSoFar) of \(assets) assets, \(rate(current.assetsSoFar))/s")
            }
            batch = await following
        }
        try await builder.close()
        printProgress("\(assets) assets and \(albums) albums in \(transactions) transactions, \(rate(assets))/s")
        printProgress("library \(library), seed \(seed)")
    }

    private func printProgress(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    private actor BatchSource {
        private var generator: LibraryGenerator

        init(_ generator: LibraryGenerator) { self.generator = generator }

        func next() -> LibraryGenerator.Batch? { generator.next() }
    }
}
