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
        try await run(in: library, output: output, LastListing())
    }

    /// Prints the assets. A table replaces the listing `last`.
    func run(in library: PhotoLibrary, output: Output, _ last: LastListing) async throws {
        let fetch = try await fetch.fetch(in: library)
        if count {
            let page = try await library.assets(fetch, count: 0)
            return try output.result(["count": JSON(page.count), "token": .string(page.token.description)]) {
                ["\(page.count)"]
            }
        }
        if ids {
            var pages = IdentifierPages(fetch, in: library)
            while let page = try await pages.next() {
                let texts = page.ids.map(\.text)
                try output.lines(output.isJSON ? texts.map { JSON.string($0).text } : texts)
            }
        } else if output.isJSON {
            for try await asset in library.allAssets(fetch) { try output.json(asset.json) }
        } else {
            try await list(fetch, in: library, output, last)
        }
    }

    /// The maximum number of rows on a terminal without `--limit`.
    private static let rowsOnTerminal = 100

    /// Prints a table and stores its assets for `@3`.
    private func list(
        _ fetch: FetchDescription,
        in library: PhotoLibrary,
        _ output: Output,
        _ last: LastListing
    ) async throws {
        let maxRows = output.isTerminal && self.fetch.limit == nil ? Self.rowsOnTerminal : Int.max
        var listing = last.begin()
        if let note = listing.note { output.note(note) }
        try output.line(output.bold(Self.heading))
        var count = 0
        let pageSize = min(maxRows, FetchAssets.maxPage)
        var pages = AssetPages(fetch, in: library, members: AssetMembers.row, pageSize: pageSize)
        while count < maxRows, let page = try await pages.next() {
            let assets = page.assets.prefix(maxRows - count)
            // The listing is stored before it is printed: the reader of a pipe may exit early, as `head` does.
            listing.append(assets.map(\.id))
            for asset in assets {
                count += 1
                try output.line(Self.row(asset, number: count))
            }
            if count == maxRows, page.count > count {
                output.note("the first \(count) of \(page.count) assets; --limit 0 lists all")
            }
        }
    }

    static let titles: [Substring] = ["id", "date", "size", "flags", "name"]
    static let heading = row(cells: [""] + titles.map { String($0) })

    static func row(_ asset: Asset, number: Int) -> String {
        let date = asset.creationDate.map { QuantityFormatter.shortTime($0, offset: asset.creationOffset) }
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
