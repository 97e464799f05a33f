import ArgumentParser
import Glibc
import Hosting
import Logging
import PhotoModel
import Storage

/// The subcommand `catalog generate`, which creates a library of any size without pixels.
struct GenerateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "generate",
        abstract: "Creates a library with plausible metadata and no pixels, for benchmarks."
    )

    @OptionGroup var libraryOptions: LibraryOptions

    @Option(help: "The number of assets.")
    var assets: Int

    @Option(help: "The random seed; the same seed creates the same library.")
    var seed: UInt64 = 1

    @Option(help: "The number of albums; half of the assets are in one.")
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
            throw ValidationError("--album-sizes takes at most 16 numbers, none above --assets")
        }
    }

    func run() async throws {
        let folder = try libraryOptions.resolve()
        let start = MonotonicInstant()
        var shown = start
        let plan = GeneratedLibraryWriter.Plan(
            assets: assets,
            albums: albums,
            sizes: albumSizes,
            trash: trash,
            seed: seed
        )
        let made = try await GeneratedLibraryWriter.make(folder: folder, plan) { count in
            guard shown.microseconds >= 500_000 else { return }
            shown = MonotonicInstant()
            printProgress("\(count) of \(assets) assets, \(start.rate(count))/s")
        }
        printProgress(
            "\(made.assets) assets and \(albums) albums in \(made.transactions) transactions, \(start.rate(made.assets))/s"
        )
        printProgress("library \(folder), seed \(seed)")
    }

    private func printProgress(_ text: String) {
        let line = Array((text + "\n").utf8)
        _ = Glibc.write(2, line, line.count)
    }
}

/// Writes a generated library directly through the store.
enum GeneratedLibraryWriter {
    /// The parameters of a library; see ``LibraryGenerator``.
    struct Plan {
        var assets: Int
        var albums = 0
        var sizes: [Int] = []
        var trash = 0.0
        var seed: UInt64
    }

    /// Creates a library in an empty folder.
    ///
    /// - Parameter progress: called with the number of assets after each transaction
    /// - Returns: the number of assets and of transactions
    static func make(
        folder: String,
        _ plan: Plan,
        progress: (Int) -> Void = { _ in }
    ) async throws -> (assets: Int, transactions: Int) {
        try LibraryFolder.make(folder)
        let lock = try LockFile(
            path: "\(folder)/lock",
            program: "catalog",
            using: folder,
            advice: "stop it or choose another --library"
        )
        defer { withExtendedLifetime(lock) {} }
        var random = SeededRandomNumberGenerator(seed: plan.seed ^ 0x5AFE_1167)
        let store = try LibraryStore(
            folder: folder,
            now: 1_262_304_000_000_000,
            newHistory: random.name(),
            logger: Logger(label: "generate") { _ in SwiftLogNoOpLogHandler() }
        )
        let (head, root, existing) = try await store.read { reader in
            (try reader.head(), try reader.collections.list(.root), try reader.counter("assets"))
        }
        guard existing == 0, head.sequence == 0, let root else {
            throw ValidationError("\(folder) already contains a library; choose an empty folder with --library")
        }
        let source = BatchSource(
            LibraryGenerator(
                assets: plan.assets,
                albums: plan.albums,
                sizes: plan.sizes,
                trash: plan.trash,
                seed: plan.seed,
                library: head.library,
                sequence: head.sequence,
                root: root
            )
        )
        var transactions = 0
        var made = 0
        var batch = await source.next()
        while let current = batch {
            // The next transaction is generated while this one is written.
            async let following = source.next()
            try await store.append(current)
            transactions += 1
            made = current.assetsSoFar
            progress(made)
            batch = await following
        }
        try store.headFile.store(library: head.library, sequence: Int64(transactions))
        try store.close()
        return (made, transactions)
    }

    private actor BatchSource {
        private var generator: LibraryGenerator

        init(_ generator: LibraryGenerator) { self.generator = generator }

        func next() -> LibraryGenerator.Batch? { generator.next() }
    }
}

/// A stopwatch on the monotonic clock, started at its creation.
struct MonotonicInstant {
    private let start = Self.now()

    private static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    var microseconds: Int64 { Self.now() - start }

    /// Returns the average rate per second so far.
    func rate(_ count: Int) -> Int { Int(Double(count) * 1e6 / Double(max(1, microseconds))) }
}
