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
        discussion: "Flags: F favorite, H hidden, E edited, V video."
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
        if !output.isJSON && !ids { try output.line(output.bold(Self.heading)) }
        for try await asset in library.allAssets(fetch) {
            if output.isJSON {
                try output.json(ids ? .string(asset.id.text) : asset.json)
            } else {
                try output.line(ids ? asset.id.text : Self.row(asset))
            }
        }
    }

    static let heading = row("id", "date", "size", "flags", "name")

    static func row(_ asset: Asset) -> String {
        let date = asset.creationDate.map { QuantityFormatter.shortMoment($0, offset: asset.creationOffset) }
        return row(
            asset.id.text,
            date ?? "-",
            "\(asset.pixelWidth)x\(asset.pixelHeight)",
            asset.flagLetters,
            (asset.originalFilename ?? "-").printable.shortened(to: 60)
        )
    }

    private static func row(_ id: String, _ date: String, _ size: String, _ flags: String, _ name: String) -> String {
        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        return [padded(id, ObjectID.length), padded(date, 19), padded(size, 11), padded(flags, 5), name]
            .joined(separator: "  ")
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
