import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight duplicates`
struct DuplicatesCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "duplicates",
        abstract: "List assets with the same image.",
        discussion: """
            Files with the same bytes are one asset already. This command lists those whose image data are the same, but \
            into which another program has written keywords, dates or a rating. The one that was imported first comes \
            first; --ids prints the others, for `safelight duplicates --ids | safelight trash -`.
            """
    )

    @Flag(help: "Print the identifiers of all but the first of each group, one per line.")
    var ids = false

    @Option(help: "The maximum number of groups; 0 for all.")
    var limit = 0

    @OptionGroup var client: ClientOptions

    func validate() throws {
        guard limit >= 0 else { throw ValidationError("--limit is a number from 0") }
        guard !ids || !client.json else { throw ValidationError("--ids and --json exclude each other") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        try await run(in: library, output: output, LastListing())
    }

    /// Prints the groups. A table replaces the listing `last`.
    func run(in library: PhotoLibrary, output: Output, _ last: LastListing) async throws {
        let isTable = !ids && !output.isJSON
        var listing: LastListing.Recorder?
        var (groups, others, rows) = (0, 0, 0)
        var request = FetchDuplicates()
        while true {
            let page = try await library.catalog.ask(request).result
            let shown = page.groups.prefix(limit == 0 ? .max : limit - groups)
            if isTable, listing == nil, !shown.isEmpty {
                listing = last.begin()
                if let note = listing?.note { output.note(note) }
            }
            // The assets of all groups of the page are read together.
            var assets = NamedAssets(
                isTable ? shown.flatMap(\.assets) : [],
                in: library,
                members: AssetMembers.row,
                pieceSize: FetchAssets.maxPage
            )
            for group in shown {
                groups += 1
                others += group.assets.count - 1
                if output.isJSON {
                    try output.json(group.json)
                } else if ids {
                    try output.lines(group.assets.dropFirst().map(\.text))
                } else {
                    var members: [Asset] = []
                    for _ in group.assets {
                        if let asset = try await assets.next()?.asset { members.append(asset) }
                    }
                    // The listing is stored before it is printed: the reader of a pipe may exit early, as `head` does.
                    listing?.append(members.map(\.id))
                    try output.line(groups == 1 ? output.bold(FetchCommand.heading) : "")
                    for asset in members {
                        rows += 1
                        try output.line(FetchCommand.row(asset, number: rows))
                    }
                }
            }
            guard let next = page.next, limit == 0 || groups < limit else { break }
            request.after = next
        }
        guard isTable else { return }
        let images = QuantityFormatter.count(groups, "image")
        output.note(groups == 0 ? "no image is in the library twice" : "\(images) in \(groups + others) assets")
    }
}
