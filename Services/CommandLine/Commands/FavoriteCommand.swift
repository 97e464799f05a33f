import ArgumentParser
import PhotoClient
import PhotoModel

/// `safelight favorite`
struct FavoriteCommand: SelectionCommand {
    static let configuration = CommandConfiguration(
        commandName: "favorite",
        abstract: "Mark assets as favorites, or remove the mark."
    )

    @OptionGroup var assets: AssetSelection

    @Flag(help: "Remove the mark.")
    var off = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        try await BatchedChanges.set(
            AssetPatch(isFavorite: !off),
            of: try await assets.read(in: library),
            in: library,
            output,
            off ? "no longer marked as favorite" : "marked as favorite"
        )
    }
}
