import ArgumentParser
import Contracts
import PhotoClient
import PhotoModel

/// `safelight trash`
struct TrashCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "trash",
        abstract: "Put assets into the trash; they go for good after thirty days.",
        discussion: "`safelight fetch --trash` lists them, `safelight untrash` takes them out again."
    )

    @OptionGroup var assets: Identifiers

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        // Albums and moments are touched besides.
        try await Transactions.perform(try assets.read(), in: library, output, "in the trash", besides: 500) {
            [.trashAssets(.init(ids: $0))]
        }
    }
}

/// `safelight untrash`
struct UntrashCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "untrash",
        abstract: "Take assets out of the trash, back into their albums."
    )

    @OptionGroup var assets: Identifiers

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        try await Transactions.perform(try assets.read(), in: library, output, "restored", besides: 500) {
            [.restoreAssets(.init(ids: $0))]
        }
    }
}
