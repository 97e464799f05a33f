import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// The options that select assets and their order.
struct FetchOptions: ParsableArguments {
    @Option(
        name: .customLong("where"),
        help: ArgumentHelp(
            "Only assets that match a predicate in NSPredicate syntax.",
            discussion: "Example: 'isFavorite == YES AND creationDate >= \"2024-05-01T00:00:00Z\"'.",
            valueName: "predicate"
        )
    )
    var predicate: String?

    @Option(
        name: .customLong("sort"),
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Sort key; :desc or a leading - for descending order. May be repeated.",
            valueName: "key[:desc]"
        )
    )
    var sort: [String] = []

    @Option(parsing: .unconditional, help: "Maximum number of assets; 0 for all, the default.")
    var limit: Int?

    @Option(parsing: .unconditional, help: "Number of assets to skip.")
    var offset = 0

    @Flag(help: "Include hidden assets.")
    var hidden = false

    @Flag(help: "Only assets in the trash.")
    var trash = false

    @Option(
        help: ArgumentHelp(
            "Only members of an album, smart album, moment or folder.",
            discussion: "Smart albums have English names; `safelight album list --smart` lists them.",
            valueName: "id|title"
        ),
        completion: Completions.albums
    )
    var album: String?

    /// True if none of the options is given.
    var isEmpty: Bool {
        predicate == nil && sort.isEmpty && limit == nil && offset == 0 && !hidden && !trash && album == nil
    }

    /// Returns the fetch in its wire form, after looking up the album's title in the library.
    func fetch(in library: PhotoLibrary) async throws -> FetchDescription {
        var container: ObjectID?
        if let album { container = try await AlbumLookup.container(album, in: library) }
        return try fetch(of: container).wireForm
    }

    /// Returns the fetch of the whole library (nil) or of one container.
    func fetch(of container: ObjectID?) throws(PredicateError) -> Fetch {
        var descriptors: [SortDescriptor] = []
        for text in sort {
            let (key, isAscending) = try Self.sortKey(text)
            descriptors.append(try SortDescriptor(key, ascending: isAscending, of: .asset))
        }
        var condition: Predicate?
        if let predicate { condition = try Predicate(format: predicate, of: .asset) }
        return try Fetch(
            .assets(container.map { $0.kind == .collectionList ? .below($0) : .collection($0) } ?? .library),
            predicate: condition,
            sort: descriptors,
            limit: limit ?? 0,
            offset: offset,
            includeHidden: hidden ? true : nil,
            inTrash: trash ? true : nil
        )
    }

    /// Parses `creationDate`, `creationDate:asc`, `creationDate:desc` or `-creationDate`.
    static func sortKey(_ text: String) throws(PredicateError) -> (key: String, isAscending: Bool) {
        if text.hasPrefix("-"), !text.contains(":") { return (String(text.dropFirst()), false) }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        switch parts.count == 2 ? parts[1] : parts.count == 1 ? "asc" : "" {
        case "asc": return (String(parts[0]), true)
        case "desc": return (String(parts[0]), false)
        default:
            throw PredicateError(
                .unsupportedSortKey,
                "\"\(text.prefix(100))\" is not a sort key; use key, key:asc or key:desc"
            )
        }
    }
}
