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
            "Show files that are opened no more because they crashed or hung a worker, and let them be tried again.",
        subcommands: [List.self, Lift.self],
        defaultSubcommand: List.self
    )

    /// `safelight quarantine list`
    struct List: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "List them, the latest first.")
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
                        Quantities.shortMoment(entry.date), "\(entry.failures)", entry.service, entry.reason,
                        entry.assets.isEmpty ? "none" : entry.assets.map(\.text).joined(separator: " "), entry.digest,
                    ])
                }
                position += page.resources.count
                if page.resources.isEmpty || position >= page.count { break }
            }
            if !output.isJSON { try output.lines(position == 0 ? ["nothing is set aside"] : table.lines) }
        }
    }

    /// `safelight quarantine lift`
    struct Lift: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let files be tried again.",
            discussion: "After an upgrade of the libraries that open pictures, or when the machine was short of memory."
        )
        @Argument(help: "Identifiers of assets, or digests as list shows them.") var ids: [String] = []
        @Flag(help: "All of them.") var all = false
        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard ids.isEmpty == all else { throw ValidationError("name assets or digests, or say --all") }
        }

        func run(in library: PhotoLibrary, output: Output) async throws {
            var lifted = 0
            for digest in all ? [nil] : try await digests(in: library).map(Optional.some) {
                lifted += try await library.catalog.ask(LiftQuarantine(digest: digest)).result.lifted
            }
            try output.result(["lifted": JSON(lifted)]) { ["\(Quantities.count(lifted, "file")) may be tried again"] }
        }

        private func digests(in library: PhotoLibrary) async throws -> [String] {
            var digests: [String] = []
            for id in ids {
                if id.utf8.count == 64 {
                    digests.append(id)
                } else {
                    digests += try await library.asset(Identifiers.one(id)).resources.map(\.digest)
                }
            }
            return digests
        }
    }
}
