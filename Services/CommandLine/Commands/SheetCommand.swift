public import ArgumentParser
public import Contracts
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

    @Option(
        name: .shortAndLong,
        help: "Output file, a JPEG; - for standard output. Default: sheet.jpg, or sheet.html with --html."
    )
    var output: String?

    @Option(help: "Number of columns, 1 to 40; of justified rows, the width in cells.")
    var columns = 6

    @Option(help: "Width and height of a cell in pixels, 32 to 1024; of justified rows, the maximum height.")
    var cell = 256

    @Option(
        help: "Arrangement: justified, in rows that are filled from edge to edge, or grid, in squares of equal size."
    )
    var layout = ImageSheet.Layout.justified

    @Flag(help: "Save a web page that contains its images, also for an output file ending in .html.")
    var html = false

    @Option(help: ArgumentHelp("Title of the web page. Default: the name of the file.", valueName: "text"))
    var title: String?

    @Flag(help: "Show the originals, without edits.")
    var original = false

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.catalog, .thumbnailer] }

    func validate() throws {
        guard (1...40).contains(columns) else { throw ValidationError("--columns must be a number from 1 to 40") }
        guard (32...1024).contains(cell) else { throw ValidationError("--cell must be a number from 32 to 1024") }
    }

    func check() throws {
        _ = try fetch.fetch(of: nil)
        if !isPage { try OutputFile.requireJPEG(file) }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let fetch = try await fetch.fetch(in: library)
        var pages = AssetPages(
            fetch,
            in: library,
            members: isPage ? AssetMembers.figure : AssetMembers.name,
            pageSize: ImageSheet.maxAssets
        )
        guard var page = try await pages.next(), !page.assets.isEmpty else {
            throw CommandFailure(message: "the fetch has no assets: there is nothing to draw", name: "empty_fetch")
        }
        while page.assets.count < ImageSheet.maxAssets, let more = try await pages.next() {
            page.assets += more.assets.prefix(ImageSheet.maxAssets - page.assets.count)
        }
        if page.count > page.assets.count {
            output.note("showing the first \(page.assets.count) of \(page.count)")
        }
        if isPage {
            try await savePage(of: page.assets, in: library, output)
        } else {
            try await saveImage(of: page, in: library, output)
        }
    }

    private var isPage: Bool { html || output?.lowercased().hasSuffix(".html") == true }
    private var file: String { output ?? (isPage ? "sheet.html" : "sheet.jpg") }

    private func saveImage(of page: FetchAssets.Result, in library: PhotoLibrary, _ output: Output) async throws {
        var request = ImageSheet(
            assets: page.assets.map(\.id),
            columns: min(columns, page.assets.count),
            cell: cell,
            layout: layout,
            version: original ? .original : .current,
            atLeast: page.token
        )
        request.isNetworkAccessAllowed = downloads.download
        let response = try await library.thumbnailer.ask(request, deadline: .seconds(600), downloads, output)
        guard let image = response.attachments.first else {
            throw CommandFailure(message: "the thumbnailer returned no image", name: ErrorCode.internalError.rawValue)
        }
        try OutputFile.write(image, to: file)
        guard file != "-" else { return }
        let result = response.result
        var json = result.json.objectValue ?? [:]
        json["file"] = .string(file)
        json["assets"] = JSON(page.assets.count)
        try output.result(.object(json)) {
            let size = "\(result.pixelWidth) x \(result.pixelHeight) pixels"
            return ["\(file.printable): \(QuantityFormatter.count(page.assets.count, "image")), \(size)"]
                + result.failed.members.map {
                    "no image of \($0.name): \(CommandFailure.message(ofResult: $0.value))"
                }
        }
        if !result.failed.isEmpty { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }

    /// The maximum number of images of a page that are requested at a time.
    private static let maxRequests = 8

    private func savePage(of assets: [Asset], in library: PhotoLibrary, _ output: Output) async throws {
        var entries = assets.map { SheetPage.Entry(asset: $0) }
        try await withThrowingTaskGroup(of: (index: Int, entry: SheetPage.Entry).self) { group in
            var next = 0
            func requestNext() {
                guard next < assets.count else { return }
                let index = next
                next += 1
                let (asset, request) = (assets[index], pageRequest(for: assets[index]))
                group.addTask { (index, try await Self.entry(for: asset, request, in: library)) }
            }
            for _ in 0..<Self.maxRequests { requestNext() }
            for try await done in group {
                entries[done.index] = done.entry
                requestNext()
            }
        }
        let name = file == "-" ? "Contact sheet" : String(file.split(separator: "/").last?.dropLast(5) ?? "")
        let page = SheetPage(title: title ?? name, rowHeight: cell, entries: entries)
        let bytes = Array(page.html.utf8)
        try OutputFile.write(bytes, to: file)
        guard file != "-" else { return }
        let failed = entries.filter { $0.image == nil }
        let reasons = failed.map { (name: $0.asset.id.text, value: JSON.string($0.problem)) }
        try output.result([
            "file": .string(file), "assets": JSON(assets.count), "size": JSON(bytes.count),
            "failed": .object(JSONObject(distinct: reasons)),
        ]) {
            [
                "\(file.printable): \(QuantityFormatter.count(assets.count, "image")), \(QuantityFormatter.bytes(Int64(bytes.count)))"
            ]
                + failed.map { "no image of \($0.asset.id): \($0.problem.printable)" }
        }
        if !failed.isEmpty { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }

    /// Returns a request for an image of twice the row height, for screens with two pixels in a CSS pixel.
    private func pageRequest(for asset: Asset) -> ImageRequest {
        var request = ImageRequest(
            asset: asset.id,
            targetSize: .size(width: 8 * cell, height: 2 * cell),
            resizeMode: .fast,
            deliveryMode: .highQualityFormat,
            version: original ? .original : .current
        )
        request.isNetworkAccessAllowed = downloads.download
        request.keepSize(of: asset)
        return request
    }

    private static func entry(
        for asset: Asset,
        _ request: ImageRequest,
        in library: PhotoLibrary
    ) async throws(RPCError) -> SheetPage.Entry {
        do throws(RPCError) {
            let (result, bytes) = try await library.image(
                request,
                deadline: request.isNetworkAccessAllowed ? nil : .seconds(120)
            )
            return .init(asset: asset, image: (bytes, result.pixelWidth, result.pixelHeight))
        } catch {
            guard !error.meansNoResponse else { throw error }
            return .init(asset: asset, problem: CommandFailure(error).message)
        }
    }
}

extension ImageSheet.Layout: ExpressibleByArgument {}
