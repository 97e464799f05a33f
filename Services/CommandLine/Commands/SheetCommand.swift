import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight sheet`
struct SheetCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "sheet",
        abstract: "Save a contact sheet: the assets of a fetch in one image.",
        discussion: "A sheet has at most \(ImageSheet.maxAssets) assets; use --offset for the next ones."
    )

    @OptionGroup var fetch: FetchOptions

    @Option(name: .shortAndLong, help: "Output file; - for standard output.")
    var output = "sheet.jpg"

    @Option(help: "Number of columns, 1 to 40.")
    var columns = 6

    @Option(help: "Width and height of a cell in pixels, 32 to 1024.")
    var cell = 256

    @Flag(help: "Show the originals, without edits.")
    var original = false

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.catalog, .thumbnailer] }

    func validate() throws {
        guard (1...40).contains(columns) else { throw ValidationError("--columns must be a number from 1 to 40") }
        guard (32...1024).contains(cell) else { throw ValidationError("--cell must be a number from 32 to 1024") }
    }

    func check() throws { _ = try fetch.fetch(of: nil) }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let fetch = try await fetch.fetch(in: library)
        let page = try await library.assets(fetch, count: ImageSheet.maxAssets)
        guard !page.assets.isEmpty else {
            throw CommandFailure(message: "the fetch has no assets", name: ErrorCode.identifierNotFound.rawValue)
        }
        if page.count > page.assets.count {
            output.note("showing the first \(page.assets.count) of \(page.count)")
        }
        let request = ImageSheet(
            assets: page.assets.map(\.id),
            columns: min(columns, page.assets.count),
            cell: cell,
            version: original ? .original : .current,
            atLeast: page.token
        )
        let answer = try await library.thumbnailer.ask(request, deadline: .seconds(600))
        guard let image = answer.attachments.first else {
            throw CommandFailure(message: "the thumbnailer returned no image", name: ErrorCode.internalError.rawValue)
        }
        try OutputFile.write(image, to: self.output)
        guard self.output != "-" else { return }
        let result = answer.result
        var json = result.json.objectValue ?? [:]
        json["file"] = .string(self.output)
        json["assets"] = JSON(page.assets.count)
        try output.result(.object(json)) {
            let size = "\(result.pixelWidth) x \(result.pixelHeight) pixels"
            return ["\(self.output.printable): \(QuantityFormatter.count(page.assets.count, "picture")), \(size)"]
                + result.failed.members.map {
                    "no image of \($0.name): \(($0.value["message"]?.stringValue ?? "").printable)"
                }
        }
        if !result.failed.isEmpty { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }
}
