import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight fetch`
struct FetchCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch",
        abstract: "List assets.",
        discussion: """
            Flags: F favorite, H hidden, E edited, V video. Other commands take the numbers in the first column for \
            assets: @3, or @2-5. On a terminal the first \(rowsOnTerminal) assets are shown; --limit shows others.
            """
    )

    @OptionGroup var fetch: FetchOptions

    @Flag(help: "Print only identifiers, one per line.")
    var ids = false

    @Flag(help: "Print only the number of assets.")
    var count = false

    @OptionGroup var client: ClientOptions

    func check() throws { _ = try fetch.fetch(of: nil) }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let fetch = try await fetch.fetch(in: library)
        if count {
            let page = try await library.assets(fetch, count: 0)
            return try output.result(["count": JSON(page.count), "token": .string(page.token.description)]) {
                ["\(page.count)"]
            }
        }
        if ids || output.isJSON {
            for try await asset in library.allAssets(fetch) {
                if output.isJSON {
                    try output.json(ids ? .string(asset.id.text) : asset.json)
                } else {
                    try output.line(asset.id.text)
                }
            }
            return
        }
        try await list(fetch, in: library, output)
    }

    /// The assets that are listed on a terminal unless `--limit` says otherwise.
    private static let rowsOnTerminal = 100

    /// Prints a table and keeps its assets for `@3`.
    private func list(_ fetch: FetchDescription, in library: PhotoLibrary, _ output: Output) async throws {
        let most = output.isTerminal && self.fetch.limit == nil ? Self.rowsOnTerminal : Int.max
        var listing = LastListing().begin()
        var (count, page): (Int, [Asset]) = (0, [])
        /// The numbers are kept before they are shown: the reader may go away, as `head` does.
        func show() throws {
            listing.append(page.map(\.id))
            for asset in page {
                count += 1
                try output.line(Self.row(asset, number: count))
            }
            page = []
        }
        if listing.isOutdated {
            output.note(
                "the listing cannot be written, so @1 and the like name assets of an earlier one; set XDG_STATE_HOME to a "
                    + "folder that can be written"
            )
        }
        try output.line(output.bold(Self.heading))
        for try await asset in library.allAssets(fetch, pageSize: Self.pageSize) {
            guard count + page.count < most else {
                try show()
                let all = try await library.assets(fetch, count: 0).count
                output.note("the first \(count) of \(all) assets; --limit 0 lists all")
                break
            }
            page.append(asset)
            if page.count == Self.pageSize { try show() }
        }
        try show()
    }

    /// The assets that are read, and then shown, at a time.
    private static let pageSize = 500

    static let titles: [Substring] = ["id", "date", "size", "flags", "name"]
    static let heading = row(cells: [""] + titles.map { String($0) })

    static func row(_ asset: Asset, number: Int) -> String {
        let date = asset.creationDate.map { QuantityFormatter.shortMoment($0, offset: asset.creationOffset) }
        return row(
            "@\(number)",
            asset.id.text,
            date ?? "-",
            "\(asset.pixelWidth)x\(asset.pixelHeight)",
            asset.flagLetters,
            (asset.originalFilename ?? "-").printable.shortened(to: 60)
        )
    }

    private static func row(_ cells: String...) -> String { row(cells: cells) }

    private static func row(cells: [String]) -> String {
        let widths = [4, ObjectID.length, 19, 11, 5]
        return cells.enumerated().map { index, cell in
            cell + String(repeating: " ", count: index < widths.count ? max(0, widths[index] - cell.count) : 0)
        }.joined(separator: "  ")
    }
}

extension Asset {
    /// The flags of the asset in a list: F favorite, H hidden, E edited, V video; - for none.
    var flagLetters: String {
        let letters =
            (isFavorite ? "F" : "") + (isHidden ? "H" : "") + (hasAdjustments ? "E" : "")
            + (mediaType == .video ? "V" : "")
        return letters.isEmpty ? "-" : letters
    }
}
