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

    @Argument(help: "Asset identifier.")
    var id: String

    @Option(help: "Restore the asset to its state after this step.")
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
                [
                    outcome.isChanged
                        ? "\(id) is restored to step \(undoTo), change #\(outcome.sequence)"
                        : "\(id) is already in this state"
                ]
            }
        }
        let history = try await library.editor.ask(EditHistory(asset: id)).result
        try output.result(history.json) {
            history.steps.map { step in
                let what =
                    step.kind == .revert
                    ? "reverted" : "\(step.formatIdentifier ?? "") \(step.formatVersion ?? "")".printable
                let operations = step.adjustments?["operations"]?.arrayValue?.compactMap {
                    $0["operation"]?.stringValue
                }
                return "\(step.step)  #\(step.sequence)  \(what)  \((operations ?? []).joined(separator: ", "))"
            } + (history.isComplete ? [] : ["older steps are no longer in the history"])
        }
    }
}

/// `safelight compare`
struct CompareCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare",
        abstract: "Save the original and the edited version side by side in one image."
    )

    @Argument(help: "Asset identifier.")
    var id: String

    @Option(name: .shortAndLong, help: "Output file; - for standard output.")
    var output = "compare.jpg"

    @Option(help: "Longer side of each image in pixels, 16 to 2048.")
    var size = 1024

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func check() throws {
        _ = try Identifiers.one(id)
        guard (16...2048).contains(size) else { throw CommandFailure.usage("--size must be a number from 16 to 2048") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = CompareEdit(asset: try Identifiers.one(id), maximumSide: size)
        try EditedImageOutput.save(
            try await library.editor.ask(request, deadline: .seconds(120)),
            to: self.output,
            output
        )
    }
}
