import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight edit`
struct EditCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit",
        abstract: "Edit an asset; its original is never touched.",
        discussion: """
            The flags apply in this order: rotate, flip, straighten, crop, exposure, temperature, contrast, \
            saturation, black-and-white. Any other order is written as an adjustment list: \
            {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}, …]}.
            """
    )

    @Argument(help: "The asset's identifier.")
    var id: String

    @OptionGroup var adjustments: AdjustmentOptions

    @Flag(help: "After the operations that are there, instead of in their place.")
    var append = false

    @Option(help: "Commit nothing; save how it would look, 1024 pixels wide or high.")
    var preview: String?

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func check() throws {
        _ = try Identifiers.one(id)
        // Standard input can be read only once.
        if adjustments.listFile != "-" { _ = try adjustments.list() }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let id = try Identifiers.one(id)
        let list = try adjustments.list()
        if let preview {
            let answer = try await library.editor.ask(
                PreviewEdit(asset: id, adjustments: list),
                deadline: .seconds(120)
            )
            guard let image = answer.attachments.first else {
                throw CommandFailure(message: "the editor sent no image", name: Refusal.internalError.rawValue)
            }
            try OutputFile.write(image, to: preview)
            guard preview != "-" else { return }
            return try output.result(answer.result.json) {
                ["\(preview.printable): \(answer.result.pixelWidth) x \(answer.result.pixelHeight) pixels"]
            }
        }
        let request = ApplyEdit(
            asset: id,
            adjustments: list,
            mode: append ? .append : .replace,
            client: library.client,
            transaction: PhotoLibrary.randomTransaction()
        )
        let outcome = try await library.editor.ask(request, deadline: .seconds(300)).result
        try output.result(outcome.json) {
            [outcome.isChanged ? "edited \(id), change #\(outcome.sequence)" : "\(id) was like that already"]
        }
    }
}
