import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight revert`
struct RevertCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "revert",
        abstract: "Revert assets to their originals by discarding all edits."
    )

    @OptionGroup var assets: AssetArguments

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func run(in library: PhotoLibrary, output: Output) async throws {
        for id in try await assets.read(in: library) {
            let request = RevertEdit(
                asset: id,
                client: library.client,
                transaction: PhotoLibrary.randomTransaction()
            )
            let outcome = try await library.editor.ask(request, deadline: .seconds(120)).result
            try output.result(outcome.json) {
                [outcome.isChanged ? "reverted \(id), change #\(outcome.sequence)" : "\(id) has no edits"]
            }
        }
    }
}
