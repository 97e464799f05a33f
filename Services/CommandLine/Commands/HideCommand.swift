import ArgumentParser
import PhotoClient
import PhotoModel

/// `safelight hide`
struct HideCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "hide",
        abstract: "Leave assets out of usual fetches, or show them again."
    )

    @Argument(help: "Identifiers, or - for standard input.")
    var ids: [String]

    @Flag(help: "Show them again.")
    var off = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try Identifiers.read(ids)
        let patch = AssetPatch(isHidden: !off)
        try await Transactions.perform(ids, in: library, output, off ? "shown again" : "hidden") { ids in
            ids.map { .updateAsset(.init(id: .id($0), set: patch)) }
        }
    }
}
