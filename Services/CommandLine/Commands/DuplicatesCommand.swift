import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight duplicates`
struct DuplicatesCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "duplicates",
        abstract: "List assets with the same picture.",
        discussion: """
            Files with the same bytes are one asset already. This command lists those whose image data are the same, but \
            into which another program has written keywords, dates or a rating. The one that was imported first comes \
            first; --ids prints the others, for `safelight duplicates --ids | safelight trash -`.
            """
    )

    @Flag(help: "Print the identifiers of all but the first of each group, one per line.")
    var ids = false

    @Option(help: "The most groups; 0 for all.")
    var limit = 0

    @OptionGroup var client: ClientOptions

    func validate() throws {
        guard limit >= 0 else { throw ValidationError("--limit is a number from 0") }
        guard !ids || !client.json else { throw ValidationError("--ids and --json exclude each other") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        var listed: [ObjectID] = []
        var (groups, others) = (0, 0)
        var request = FetchDuplicates()
        pages: while true {
            let page = try await library.catalog.ask(request).result
            for group in page.groups {
                if limit > 0, groups == limit { break pages }
                groups += 1
                others += group.assets.count - 1
                if output.isJSON {
                    try output.json(group.json)
                } else if ids {
                    try output.lines(group.assets.dropFirst().map(\.text))
                } else {
                    try output.line(groups == 1 ? output.bold(FetchCommand.heading) : "")
                    for asset in try await library.assets(group.assets).assets {
                        listed.append(asset.id)
                        try output.line(FetchCommand.row(asset, number: listed.count))
                    }
                }
            }
            guard let next = page.next else { break }
            request.after = next
        }
        guard !ids, !output.isJSON else { return }
        if !listed.isEmpty { LastListing().write(listed) }
        let pictures = QuantityFormatter.count(groups, "picture")
        output.note(groups == 0 ? "no picture is there twice" : "\(pictures) in \(groups + others) assets")
    }
}
