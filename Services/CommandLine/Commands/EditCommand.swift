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
        abstract: "Edit assets; their originals are never touched.",
        discussion: """
            The flags apply in this order: rotate, flip, straighten, crop, exposure, temperature, contrast, \
            saturation, black-and-white, then every --operation. Any other order is written as an adjustment list: \
            {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}, …]}.
            """
    )

    @Argument(help: "Identifiers, or - for standard input.")
    var ids: [String]

    @OptionGroup var adjustments: AdjustmentOptions

    @Flag(help: "After the operations that are there, instead of in their place.")
    var append = false

    @Flag(help: "Begin with what would make the picture look better, as explicit values.")
    var enhance = false

    @Flag(help: "Check everything, render and commit nothing.")
    var dryRun = false

    @Option(help: "One asset: refuse where it has another revision, as `safelight show` prints it.")
    var ifRevision: String?

    @Option(help: "high, normal or low: how soon it is rendered.")
    var priority = "normal"

    @Option(help: "Commit nothing; save how it would look, 1024 pixels wide or high.")
    var preview: String?

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func check() throws {
        for id in ids where id != "-" { _ = try Identifiers.one(id) }
        // Standard input can be read only once.
        if adjustments.listFile != "-" { _ = try adjustments.list(mayBeEmpty: enhance) }
        guard EditPriority(rawValue: priority) != nil else {
            throw CommandFailure.usage("--priority is high, normal or low")
        }
        guard preview == nil || ids.count == 1 else { throw CommandFailure.usage("--preview is of one asset") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try Identifiers.read(ids)
        let list = try adjustments.list(mayBeEmpty: enhance)
        if let preview, let id = ids.first { return try await save(preview, id, list, library, output) }
        var request = ApplyEdits(
            adjustments: list,
            mode: append ? .append : .replace,
            enhance: enhance,
            priority: EditPriority(rawValue: priority) ?? .normal,
            dryRun: dryRun,
            client: library.client,
            transaction: PhotoLibrary.randomTransaction()
        )
        if ids.count == 1 { request.asset = ids.first } else { request.assets = ids }
        if let ifRevision { request.ifRevision = try revision(ifRevision) }
        let outcome = try await library.editor.ask(request, deadline: .seconds(300 + 60 * ids.count)).result
        try output.result(outcome.json) {
            if dryRun { return ["\(Quantities.count(ids.count, "asset")) would be edited; nothing was done"] }
            guard let id = outcome.asset else {
                return [
                    "edited \(Quantities.count(outcome.done, "asset"))"
                        + (outcome.failed > 0 ? ", \(outcome.failed) failed" : "")
                ]
                    + outcome.results.compactMap { result in
                        result["error"].map {
                            "\(result["asset"]?.stringValue ?? ""): \(($0["message"]?.stringValue ?? "").printable)"
                        }
                    }
            }
            return [
                outcome.isChanged ? "edited \(id), change #\(outcome.sequence ?? 0)" : "\(id) was like that already"
            ]
        }
        if outcome.failed > 0 { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }

    private func save(
        _ file: String,
        _ id: ObjectID,
        _ list: AdjustmentList,
        _ library: PhotoLibrary,
        _ output: Output
    ) async throws {
        let answer = try await library.editor.ask(PreviewEdit(asset: id, adjustments: list), deadline: .seconds(120))
        try EditedPicture.save(answer, to: file, output)
    }

    private func revision(_ text: String) throws -> Revision {
        guard text.first == "r", let number = Int64(text.dropFirst()) else {
            throw CommandFailure.usage("--if-revision is a revision as `safelight show` prints it")
        }
        return Revision(number)
    }
}

/// A picture that the editor answered.
enum EditedPicture {
    static func save(_ answer: Answer<PreviewEdit.Result>, to file: String, _ output: Output) throws {
        guard let image = answer.attachments.first else {
            throw CommandFailure(message: "the editor sent no image", name: Refusal.internalError.rawValue)
        }
        try OutputFile.write(image, to: file)
        guard file != "-" else { return }
        try output.result(answer.result.json) {
            ["\(file.printable): \(answer.result.pixelWidth) x \(answer.result.pixelHeight) pixels"]
        }
    }
}
