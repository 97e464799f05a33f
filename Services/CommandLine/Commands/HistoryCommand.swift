import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight history`
struct HistoryCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Print the edit history of an asset, or restore one of its steps.",
        discussion: "Step 0 is the original. Restoring a step is a new change; the history is kept."
    )

    @Argument(help: "Asset: its identifier, its file name, or @3 of the last listing.", completion: Completions.assets)
    var id: String

    @Option(parsing: .unconditional, help: "Restore the asset to its state after this step.")
    var undoTo: Int?

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func validate() throws {
        guard undoTo.map({ $0 >= 0 }) ?? true else { throw ValidationError("--undo-to must be a number from 0") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let id = try await AssetArguments.readOne(id, in: library)
        if let undoTo {
            var request = UndoEdits(
                asset: id,
                step: undoTo,
                client: library.client,
                transaction: PhotoLibrary.uniqueTransaction()
            )
            request.isNetworkAccessAllowed = downloads.download
            let outcome = try await library.editor.change(request, deadline: .seconds(300), downloads, output)
            return try output.result(outcome.json) {
                [
                    outcome.isChanged
                        ? "\(id) is restored to step \(undoTo), change #\(outcome.sequence)"
                        : "\(id) is already in this state"
                ]
            }
        }
        let history = try await library.editor.ask(EditHistory(asset: id)).result
        if history.steps.isEmpty, history.isComplete { output.note("\(id) was never edited") }
        try output.result(history.json) {
            history.steps.map { step in
                let edit =
                    step.kind == .revert
                    ? "reverted" : "\(step.formatIdentifier ?? "") \(step.formatVersion ?? "")".printable
                let operations = step.adjustments?["operations"]?.arrayValue?.compactMap {
                    $0["operation"]?.stringValue
                }
                return "\(step.step)  #\(step.sequence)  \(edit)  \((operations ?? []).joined(separator: ", "))"
            } + (history.isComplete ? [] : ["older steps are no longer in the history"])
        }
    }
}
