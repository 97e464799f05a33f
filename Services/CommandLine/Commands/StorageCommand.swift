import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight storage`
struct StorageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage",
        abstract: "Show where the files are, and check, keep or release those in the object store.",
        discussion: "The catalog has an object store if it was started with --object-store s3://bucket/prefix.",
        subcommands: [
            Status.self, Verify.self, Keep.self, Release.self, Restore.self, Retry.self, StorageJobsCommand.self,
        ],
        defaultSubcommand: Status.self
    )

    /// `safelight storage status`
    struct Status: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show how many files are local, in the object store and waiting, and the current problem.",
            discussion: "The exit status is 1 while there is a problem."
        )
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let status = try await library.catalog.ask(StorageStatus()).result
            try output.result(status.json) { StorageText.lines(status) }
            if status.problem != nil { throw ExitCode.failure }
        }
    }

    /// `safelight storage verify`
    struct Verify: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check that the object store has what it has confirmed.",
            discussion: "Lost or damaged objects whose files are on this machine are uploaded again."
        )
        @Option(help: "The number of objects, spread over all. Default: all.") var count: Int?
        @Flag(help: "Download them and compare their SHA-256. Default: compare sizes and the store's checksums.")
        var bytes = false
        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard count.map({ $0 > 0 }) ?? true else { throw ValidationError("--count is at least 1") }
        }

        func run(in library: PhotoLibrary, output: Output) async throws {
            let request = VerifyStorage(count: count, readsBytes: bytes)
            let result = try await library.catalog.askWithProgress(request, output: output)
            try output.result(result.json) {
                [
                    "\(QuantityFormatter.count(result.checked, "object")) checked, \(result.missing.count) missing, "
                        + "\(result.damaged.count) damaged, \(result.repaired) uploaded again"
                ] + result.missing.map { "missing  \($0)" } + result.damaged.map { "damaged  \($0)" }
            }
            if result.missing.count + result.damaged.count > result.repaired { throw ExitCode.failure }
        }
    }

    /// `safelight storage keep`
    struct Keep: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Download the files of assets and keep them on this machine.",
            discussion: "Example: safelight storage keep --where 'isFavorite == YES'"
        )
        @OptionGroup var fetch: FetchOptions
        @OptionGroup var client: ClientOptions

        func check() throws { _ = try fetch.fetch(of: nil) }

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await StorageText.setKept(true, try await fetch.fetch(in: library), in: library, output)
        }
    }

    /// `safelight storage release`
    struct Release: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Release the local files of assets whose bytes are in the object store.",
            discussion: "Example: safelight storage release --where 'creationDate < \"2015-01-01T00:00:00Z\"'"
        )
        @OptionGroup var fetch: FetchOptions
        @OptionGroup var client: ClientOptions

        func check() throws { _ = try fetch.fetch(of: nil) }

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await StorageText.setKept(false, try await fetch.fetch(in: library), in: library, output)
        }
    }

    /// `safelight storage restore`
    struct Restore: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Download all files and keep them on this machine, for example to leave an object store."
        )
        @Flag(help: "All assets, with those that are hidden or in the trash.") var all = false
        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard all else { throw ValidationError("give --all; for some assets use storage keep --where …") }
        }

        func run(in library: PhotoLibrary, output: Output) async throws {
            for isInTrash in [false, true] {
                var fetch = FetchDescription(.assets)
                fetch.includeHidden = true
                fetch.includeAllBurstAssets = true
                fetch.inTrash = isInTrash
                try await StorageText.setKept(true, fetch, in: library, output)
            }
        }
    }

    /// `safelight storage retry`
    struct Retry: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Try failed uploads again.")
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let result = try await library.catalog.ask(RetryStorage()).result
            try output.result(result.json) { ["\(QuantityFormatter.count(result.count, "upload")) tried again"] }
        }
    }
}

/// The requests and texts that commands about storage have in common.
enum StorageText {
    static func lines(_ status: StorageStatus.Result) -> [String] {
        func text(_ count: Int, _ bytes: Int64) -> String {
            "\(QuantityFormatter.count(count, "file")), \(QuantityFormatter.bytes(bytes))"
        }
        guard let store = status.store else {
            return ["local     \(text(status.localCount, status.localBytes))", "there is no object store"]
        }
        let budget = status.budget.map { " of \(QuantityFormatter.bytes($0))" } ?? ""
        var lines = [
            "store     \(store), policy \(status.policy ?? "")",
            "local     \(text(status.localCount, status.localBytes))\(budget), \(status.keptCount) kept",
            "uploaded  \(text(status.remoteCount, status.remoteBytes))",
            "waiting   \(QuantityFormatter.count(status.waitingCount, "file")), \(status.failedCount) failed",
            "jobs      \(status.waitingJobCount) waiting, \(status.runningJobCount) running",
            "since the start  \(QuantityFormatter.bytes(status.uploadedBytes)) uploaded, "
                + "\(QuantityFormatter.bytes(status.downloadedBytes)) downloaded, "
                + "\(QuantityFormatter.bytes(status.releasedBytes)) released",
        ]
        if let problem = status.problem { lines.append("problem   \(problem): \(status.message ?? "")") }
        return lines
    }

    /// Downloads the files of the assets of a fetch and keeps them on this machine, or releases them, and prints the
    /// result.
    static func setKept(
        _ isKept: Bool,
        _ fetch: FetchDescription,
        in library: PhotoLibrary,
        _ output: Output
    ) async throws {
        let request = KeepInStorage(fetch: fetch, isKept: isKept)
        let result = try await library.catalog.askWithProgress(request, output: output)
        try output.result(result.json) {
            let action = isKept ? "downloaded" : "released"
            return [
                "\(QuantityFormatter.count(result.assets, "asset")): \(QuantityFormatter.count(result.count, "file")) "
                    + "\(action), \(QuantityFormatter.bytes(result.bytes))"
            ]
        }
    }
}
