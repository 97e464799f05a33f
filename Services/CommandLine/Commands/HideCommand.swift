import ArgumentParser
import PhotoClient
import PhotoModel

/// `safelight hide`
struct HideCommand: SelectionCommand {
    static let configuration = CommandConfiguration(
        commandName: "hide",
        abstract: "Hide assets from normal fetches, or show them again."
    )

    @OptionGroup var assets: AssetSelection

    @Flag(help: "Show them again.")
    var off = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        try await BatchedChanges.set(
            AssetPatch(isHidden: !off),
            of: try await assets.read(in: library),
            in: library,
            output,
            off ? "shown again" : "hidden"
        )
    }
}
