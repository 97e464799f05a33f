import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight quarantine`
struct QuarantineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine",
        abstract:
            "List files that are no longer opened because they crashed or hung a worker, or release them.",
        subcommands: [List.self, Lift.self],
        defaultSubcommand: List.self
    )

    /// `safelight quarantine list`
    struct List: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "List quarantined files, newest first.")
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            var table = TextTable([
                .init(title: "when"), .init(title: "times", alignment: .right), .init(title: "where"),
                .init(title: "what"), .init(title: "assets"), .init(title: "sha256"),
            ])
            var position = 0
            while true {
                let page = try await library.catalog.ask(ListQuarantine(from: position, count: 500)).result
                for entry in page.resources {
                    if output.isJSON { try output.json(entry.json) }
                    table.add([
                        QuantityFormatter.shortTime(entry.date), "\(entry.failures)", entry.service, entry.reason,
                        entry.assets.isEmpty ? "none" : entry.assets.map(\.text).joined(separator: " "), entry.digest,
                    ])
                }
                position += page.resources.count
                if page.resources.isEmpty || position >= page.count { break }
            }
            if !output.isJSON { try output.lines(position == 0 ? ["nothing is quarantined"] : table.lines) }
        }
    }

    /// `safelight quarantine lift`
    struct Lift: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Release files from quarantine, so that they are opened again.",
            discussion: "Use it after an upgrade of the image libraries, or if the machine was short of memory."
        )
        @Argument(help: "Asset identifiers, or digests as printed by `quarantine list`.") var ids: [String] = []
        @Flag(help: "Release all files.") var all = false
        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard ids.isEmpty == all else { throw ValidationError("name assets or digests, or give --all") }
        }

        func run(in library: PhotoLibrary, output: Output) async throws {
            var lifted = 0
            let digests: [String?] = all ? [nil] : try await digests(in: library).map(Optional.some)
            for (done, digest) in digests.enumerated() {
                do {
                    lifted += try await library.catalog.ask(LiftQuarantine(digest: digest)).result.lifted
                } catch {
                    throw CommandFailure(error, after: done, of: digests.count, "file")
                }
            }
            try output.result(["lifted": JSON(lifted)]) { ["\(QuantityFormatter.count(lifted, "file")) released"] }
        }

        private func digests(in library: PhotoLibrary) async throws -> [String] {
            var digests: [String] = []
            var assets: [ObjectID] = []
            for id in ids {
                if id.utf8.count == 64 {
                    digests.append(id)
                } else {
                    assets.append(try await AssetArguments.readOne(id, in: library))
                }
            }
            var named = NamedAssets(assets, in: library, members: ["id", "resources"])
            while let entry = try await named.next() {
                guard let asset = entry.asset else { throw NamedAssets.noAsset(entry.id) }
                digests += asset.resources.map(\.digest)
            }
            return digests
        }
    }
}
