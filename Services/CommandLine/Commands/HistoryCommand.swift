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
        abstract: "Print the edits of an asset, or take it back to one of them.",
        discussion: "Step 0 is the original. Going back is a new change; nothing of the history is lost by it."
    )

    @Argument(help: "The asset's identifier.")
    var id: String

    @Option(help: "Take the asset back to how it was after this step.")
    var undoTo: Int?

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func check() throws { _ = try Identifiers.one(id) }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let id = try Identifiers.one(id)
        if let undoTo {
            let request = UndoEdits(
                asset: id,
                step: undoTo,
                client: library.client,
                transaction: PhotoLibrary.randomTransaction()
            )
            let outcome = try await library.editor.ask(request, deadline: .seconds(300)).result
            return try output.result(outcome.json) {
                [outcome.isChanged ? "\(id) is at step \(undoTo) again, change #\(outcome.sequence)" : "\(id) is there"]
            }
        }
        let history = try await library.editor.ask(EditHistory(asset: id)).result
        try output.result(history.json) {
            history.steps.map { step in
                let what =
                    step.kind == .revert
                    ? "back to the original" : "\(step.formatIdentifier ?? "") \(step.formatVersion ?? "")".printable
                let operations = step.adjustments?["operations"]?.arrayValue?.compactMap {
                    $0["operation"]?.stringValue
                }
                return "\(step.step)  #\(step.sequence)  \(what)  \((operations ?? []).joined(separator: ", "))"
            } + (history.isComplete ? [] : ["older changes are no longer kept"])
        }
    }
}

/// `safelight compare`
struct CompareCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare",
        abstract: "Save the original and what is shown of it side by side in one picture."
    )

    @Argument(help: "The asset's identifier.")
    var id: String

    @Option(name: .shortAndLong, help: "The file; - for standard output.")
    var output = "compare.jpg"

    @Option(help: "Longer side of each of the two in pixels, 16 to 2048.")
    var size = 1024

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func check() throws {
        _ = try Identifiers.one(id)
        guard (16...2048).contains(size) else { throw CommandFailure.usage("--size is a number from 16 to 2048") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = CompareEdit(asset: try Identifiers.one(id), maximumSide: size)
        try EditedPicture.save(try await library.editor.ask(request, deadline: .seconds(120)), to: self.output, output)
    }
}
