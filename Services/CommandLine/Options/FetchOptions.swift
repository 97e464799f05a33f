import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Which assets, in which order.
struct FetchOptions: ParsableArguments {
    @Option(
        name: .customLong("where"),
        help: ArgumentHelp(
            "Only assets that pass, in NSPredicate's text form.",
            discussion: "For example: 'isFavorite == YES AND creationDate >= \"2024-05-01T00:00:00Z\"'.",
            valueName: "predicate"
        )
    )
    var predicate: String?

    @Option(
        name: .customLong("sort"),
        help: ArgumentHelp("Order; :desc for the largest first. May be repeated.", valueName: "key[:desc]")
    )
    var sort: [String] = []

    @Option(help: "The most assets; 0 for all.")
    var limit = 0

    @Option(help: "Leave out so many of the first.")
    var offset = 0

    @Flag(help: "Hidden assets too.")
    var hidden = false

    @Flag(help: "What is in the trash instead of what is not.")
    var trash = false

    @Option(
        help: ArgumentHelp(
            "Only members of an album, smart album, moment or folder.",
            discussion: "Smart albums by their English name, as `safelight album list --smart` shows them.",
            valueName: "id|title"
        )
    )
    var album: String?

    /// Nothing was said.
    var isEmpty: Bool {
        predicate == nil && sort.isEmpty && limit == 0 && offset == 0 && !hidden && album == nil
    }

    /// The fetch; an album's title is looked up in the library.
    func fetch(in library: PhotoLibrary) async throws -> FetchDescription {
        var container: ObjectID?
        if let album { container = try await Albums.container(album, in: library) }
        return try fetch(of: container).wireForm
    }

    /// The fetch of the whole library or of one album.
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
            limit: limit,
            offset: offset,
            includeHidden: hidden ? true : nil,
            inTrash: trash ? true : nil
        )
    }

    /// `creationDate`, `creationDate:asc` or `creationDate:desc`.
    static func sortKey(_ text: String) throws(PredicateError) -> (key: String, isAscending: Bool) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        switch parts.count == 2 ? parts[1] : parts.count == 1 ? "asc" : "" {
        case "asc": return (String(parts[0]), true)
        case "desc": return (String(parts[0]), false)
        default:
            throw PredicateError(
                .unsupportedSortKey,
                "\"\(text.prefix(100))\" is no order: write key, key:asc or key:desc"
            )
        }
    }
}
