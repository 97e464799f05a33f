import ArgumentParser
import PhotoClient
import PhotoModel

/// `safelight favorite`
struct FavoriteCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "favorite",
        abstract: "Mark assets as favorites, or no longer."
    )

    @Argument(help: "Identifiers, or - for standard input.")
    var ids: [String]

    @Flag(help: "No longer a favorite.")
    var off = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try Identifiers.read(ids)
        let patch = AssetPatch(isFavorite: !off)
        try await Transactions.perform(ids, in: library, output, off ? "no longer favorites" : "favorites") { ids in
            ids.map { .updateAsset(.init(id: .id($0), set: patch)) }
        }
    }
}
