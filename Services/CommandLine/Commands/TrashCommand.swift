import ArgumentParser
import Contracts
import PhotoClient
import PhotoModel

/// `safelight trash`
struct TrashCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "trash",
        abstract: "Move assets to the trash; they are deleted permanently after 30 days.",
        discussion: """
            `safelight fetch --trash` lists them, `safelight untrash` restores them. The catalog may be configured with \
            another number of days (--trash-days).
            """
    )

    @OptionGroup var assets: AssetArguments

    @OptionGroup var client: ClientOptions

    var reportsAtSignals: Bool { true }

    func run(in library: PhotoLibrary, output: Output) async throws {
        // Each transaction also changes the albums and moments of the assets.
        try await BatchedChanges.perform(
            try await assets.read(in: library),
            in: library,
            output,
            "moved to the trash",
            besides: 500
        ) {
            [.trashAssets(.init(ids: $0))]
        }
    }
}

/// `safelight untrash`
struct UntrashCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "untrash",
        abstract: "Restore assets from the trash to their albums."
    )

    @OptionGroup var assets: AssetArguments

    @OptionGroup var client: ClientOptions

    var reportsAtSignals: Bool { true }

    func run(in library: PhotoLibrary, output: Output) async throws {
        try await BatchedChanges.perform(
            try await assets.read(in: library),
            in: library,
            output,
            "restored",
            besides: 500
        ) {
            [.restoreAssets(.init(ids: $0))]
        }
    }
}
