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

    private static let deadline = Duration.seconds(120)

    var services: [ServiceName] { [.editor] }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try await assets.read(in: library)
        var transactions = CommandTransactions()
        for (done, id) in ids.enumerated() {
            let request = RevertEdit(
                asset: id,
                client: library.client,
                transaction: transactions.next()
            )
            let outcome: RevertEdit.Result
            do {
                outcome = try await library.editor.repeating(within: Self.deadline) { remaining throws(RPCError) in
                    try await library.editor.ask(request, deadline: remaining ?? Self.deadline).result
                }
            } catch {
                throw CommandFailure(error, after: done, of: ids.count)
            }
            try output.result(outcome.json) {
                [outcome.isChanged ? "reverted \(id), change #\(outcome.sequence)" : "\(id) has no edits"]
            }
        }
    }
}
