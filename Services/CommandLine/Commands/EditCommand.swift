public import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
public import PhotoModel

/// `safelight edit`
struct EditCommand: SelectionCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit",
        abstract: "Edit assets; the originals are never modified.",
        discussion: """
            The operations given replace those of earlier edits; --append keeps them and adds to them. `safelight undo` \
            undoes the edits of the last command.

            The operations apply in this order: rotate, flip, straighten, crop, exposure, temperature, contrast, \
            saturation, black-and-white, --lut, then every --operation. For another order, use --list with an \
            adjustment list: {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}, …]}.

            With --where and the other options of fetch, all assets of the fetch are edited, 100 in one request. Each \
            asset is a transaction of its own: those that were edited before an error stay edited.
            """
    )

    @OptionGroup var assets: AssetSelection

    @Flag(help: "Append to the existing operations instead of replacing them.")
    var append = false

    @Flag(help: "Replace the existing operations: the default.")
    var replace = false

    @OptionGroup var adjustments: AdjustmentOptions

    @OptionGroup(title: "Live Photos") var live: LivePhotoOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Options of ImageMagick's convert, for example '-modulate 100,130 -unsharp 0x1 -rotate 90'; converted to "
                + "the equivalent operations, which are applied after the other adjustments.",
            valueName: "options"
        )
    )
    var magick: String?

    @Flag(help: "Start with automatic enhancement, stored as explicit values.")
    var enhance = false

    @Option(help: "The engine that renders the pixels: fused, or imagemagick. Default: the setting of the editor.")
    var engine: RenderEngine?

    @Flag(help: "Validate the request without rendering or committing anything.")
    var dryRun = false

    @Option(help: "Fail if the revision (see `safelight show`) of the asset is not this one; one asset only.")
    var ifRevision: String?

    @Option(help: "Rendering priority: high, normal or low.")
    var priority = "normal"

    @Option(help: "Save a preview to this file, a JPEG, at most 1024 pixels a side, without committing.")
    var preview: String?

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    /// The number of assets that one request edits; more would exceed the deadline of a request.
    private static let assetsPerRequest = 100
    private static let deadline = Duration.seconds(600)

    var services: [ServiceName] { [.editor] }

    func validate() throws {
        guard !append || !replace else { throw ValidationError("--append and --replace exclude each other") }
    }

    func check() throws {
        try assets.check()
        // Standard input can be read only once.
        if adjustments.listFile != "-" { _ = try adjustments.list(mayBeEmpty: mayBeEmpty) }
        _ = try magickOptions()
        guard EditPriority(rawValue: priority) != nil else {
            throw CommandFailure.usage("--priority must be high, normal or low")
        }
        guard let preview else { return }
        guard assets.ids.count == 1 else { throw Self.previewCountFailure }
        guard ifRevision == nil else { throw CommandFailure.usage("--preview cannot be combined with --if-revision") }
        try OutputFile.requireJPEG(preview)
    }

    private static let previewCountFailure = CommandFailure.usage("--preview takes exactly one asset")

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try await assets.read(in: library)
        let list = live.applied(to: try adjustments.list(mayBeEmpty: mayBeEmpty))
        if let preview {
            // One argument can name several assets, and so can standard input.
            guard let id = ids.first, ids.count == 1 else { throw Self.previewCountFailure }
            return try await save(preview, id, list, library, output)
        }
        var request = ApplyEdits(
            adjustments: list,
            magick: try magickOptions(),
            mode: append ? .append : .replace,
            engine: engine,
            enhances: enhance,
            priority: EditPriority(rawValue: priority) ?? .normal,
            isDryRun: dryRun,
            client: library.client
        )
        request.isNetworkAccessAllowed = downloads.download
        if let ifRevision { request.ifRevision = try revision(ifRevision) }
        guard !ids.isEmpty else { return output.note("the fetch has no assets") }
        let batches = BatchedChanges.split(ids, by: Self.assetsPerRequest)
        if batches.count > 1 { output.note("too many assets for one request: using \(batches.count) requests") }
        var progress = ProgressReporter(output: output)
        progress.begin(total: ids.count)
        var (done, failed) = (0, 0)
        var transactions = CommandTransactions()
        for batch in batches {
            request.transaction = transactions.next()
            if ids.count == 1 { request.asset = batch.first } else { request.assets = batch }
            // The assets of this request that were edited, as the editor has reported.
            var edited = 0
            let outcome: EditOutcomes
            do {
                outcome = try await send(request, in: library, after: done, &edited, &progress)
            } catch {
                progress.clear()
                throw CommandFailure(error, after: dryRun ? 0 : done - failed + edited, of: ids.count)
            }
            done += batch.count
            failed += outcome.failed
            progress.clear()
            // The edit is complete even if its details cannot be read.
            let details = (try? await details(outcome, in: library, output)) ?? []
            try report(outcome, of: batch.count, details, output)
            if done < ids.count { progress.update(done) }
        }
        if failed > 0 { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }

    /// Sends one request and shows its progress. If the connection is lost, sends it again: its transactions are
    /// performed once.
    private func send(
        _ request: ApplyEdits,
        in library: PhotoLibrary,
        after done: Int,
        _ edited: inout Int,
        _ progress: inout ProgressReporter
    ) async throws(RPCError) -> EditOutcomes {
        let editor = library.editor
        return try await editor.repeating(within: downloads.deadline(Self.deadline)) { remaining throws(RPCError) in
            for try await event in editor.stream(request, credit: 1 << 16, deadline: remaining) {
                switch event {
                case .notification(DownloadResource.notification, _, _): continue
                case .notification(_, let params, _):
                    let (part, failed) = (params["done"]?.intValue ?? 0, params["failed"]?.intValue ?? 0)
                    edited = max(edited, Int(clamping: part))
                    progress.update(done + Int(clamping: part + failed))
                case .response(let response): return response.result
                }
            }
            throw ErrorCode.connectionLost.error(
                "the connection to the editor was lost; assets that were already edited stay edited"
            )
        }
    }

    /// Returns lines about the edit of one asset: its operations and its size before and after.
    private func details(_ outcome: EditOutcomes, in library: PhotoLibrary, _ output: Output) async throws -> [String] {
        guard let id = outcome.asset, outcome.isChanged, !dryRun, !output.isJSON else { return [] }
        let asset = try await library.namedAsset(id, members: AssetMembers.name + ["pixelWidth", "pixelHeight"])
        let steps = try await library.editor.ask(EditHistory(asset: id)).result.steps.map { step in
            step.adjustments?["operations"]?.arrayValue?.compactMap { $0["operation"]?.stringValue } ?? []
        }
        let (before, after) = (steps.dropLast().last ?? [], steps.last ?? [])
        func joined(_ operations: [String]) -> String {
            operations.isEmpty ? "none" : operations.joined(separator: ", ")
        }
        var lines = [
            "    \((asset.originalFilename ?? "-").printable), now \(asset.pixelWidth) x \(asset.pixelHeight) pixels",
            "    operations: \(joined(before)) -> \(joined(after))",
        ]
        let removed = before.filter { !after.contains($0) }
        if !removed.isEmpty, !append {
            lines.append(
                "    replaced: \(joined(removed)); `safelight undo` brings them back, --append would have kept them"
            )
        }
        return lines
    }

    private func report(
        _ outcome: EditOutcomes,
        of count: Int,
        _ details: [String],
        _ output: Output
    ) throws {
        try output.result(outcome.json) {
            if dryRun { return ["\(QuantityFormatter.count(count, "asset")) would be edited; nothing was changed"] }
            guard let id = outcome.asset else {
                return [
                    "edited \(QuantityFormatter.count(outcome.done, "asset"))"
                        + (outcome.failed > 0 ? ", \(outcome.failed) failed" : "") + Self.changes(outcome)
                ]
                    + outcome.results.compactMap { result in
                        result["error"].map {
                            "\(result["asset"]?.stringValue ?? ""): \(CommandFailure.message(ofResult: $0))"
                        }
                    }
            }
            let loss =
                "without high dynamic range: an effect, a frame or a key frame drops the gain map"
            return [
                outcome.isChanged ? "edited \(id), change #\(outcome.sequence ?? 0)" : "\(id) already has these edits"
            ] + details + (outcome.dropsGainMap ? [loss] : [])
        }
    }

    /// Returns the numbers of the first and the last change. Other clients may have made changes between them.
    private static func changes(_ outcome: EditOutcomes) -> String {
        let numbers = outcome.results.filter { $0["isChanged"]?.boolValue == true }
            .compactMap { $0["sequence"]?.intValue }
        guard let first = numbers.min(), let last = numbers.max() else { return "" }
        return first == last ? ", change #\(first)" : ", changes #\(first) to #\(last)"
    }

    private func save(
        _ file: String,
        _ id: ObjectID,
        _ list: AdjustmentList,
        _ library: PhotoLibrary,
        _ output: Output
    ) async throws {
        var request = PreviewEdit(asset: id, adjustments: list, magick: try magickOptions(), engine: engine)
        if append || enhance { request = try await complete(request, library, output) }
        request.isNetworkAccessAllowed = downloads.download
        let response = try await library.editor.ask(request, deadline: .seconds(120), downloads, output)
        try EditedImageOutput.save(response, to: file, output)
    }

    /// Returns a request for a preview of all operations that the edit would have: a preview itself neither appends nor
    /// enhances.
    private func complete(
        _ preview: PreviewEdit,
        _ library: PhotoLibrary,
        _ output: Output
    ) async throws -> PreviewEdit {
        var plan = ApplyEdits(
            assets: [preview.asset],
            adjustments: preview.adjustments,
            magick: preview.magick,
            mode: append ? .append : .replace,
            engine: engine,
            enhances: enhance,
            isDryRun: true,
            client: library.client
        )
        plan.isNetworkAccessAllowed = downloads.download
        let outcomes = try await library.editor.ask(plan, deadline: .seconds(120), downloads, output).result
        let planned = outcomes.results.first
        if let error = planned?["error"] {
            throw CommandFailure(
                message: CommandFailure.message(ofResult: error),
                name: error["name"]?.stringValue ?? ErrorCode.internalError.rawValue
            )
        }
        let engine = planned?["engine"]?.stringValue.flatMap { RenderEngine(rawValue: $0) }
        return PreviewEdit(
            asset: preview.asset,
            adjustments: try AdjustmentList(json: planned?["adjustments"] ?? .null),
            engine: engine ?? preview.engine
        )
    }

    /// True if the other options are an edit even without an operation.
    private var mayBeEmpty: Bool { enhance || magick != nil || live.audioVolume != nil || live.keyFrame != nil }

    private func magickOptions() throws -> MagickOptions? {
        guard let magick else { return nil }
        do throws(MagickOptionError) { return try MagickOptions(magick) } catch {
            throw CommandFailure.usage("--magick: \(error.description)")
        }
    }

    private func revision(_ text: String) throws -> Revision {
        guard text.first == "r", let number = Int64(text.dropFirst()) else {
            throw CommandFailure.usage("--if-revision must be a revision as printed by `safelight show`")
        }
        return Revision(number)
    }
}

/// An image that the editor returned.
enum EditedImageOutput {
    /// Writes the image to a file, or to standard output for `-`, and prints its size.
    static func save(_ response: ServiceResponse<PreviewEdit.Result>, to file: String, _ output: Output) throws {
        guard let image = response.attachments.first else {
            throw CommandFailure(message: "the editor returned no image", name: ErrorCode.internalError.rawValue)
        }
        try OutputFile.write(image, to: file)
        guard file != "-" else { return }
        try output.result(response.result.json) {
            ["\(file.printable): \(response.result.pixelWidth) x \(response.result.pixelHeight) pixels"]
        }
    }
}

extension RenderEngine: ExpressibleByArgument {}
