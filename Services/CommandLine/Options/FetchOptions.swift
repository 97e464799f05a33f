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

    @Option(help: ArgumentHelp("Only members of an album.", valueName: "id|title"))
    var album: String?

    /// Nothing was said.
    var isEmpty: Bool {
        predicate == nil && sort.isEmpty && limit == 0 && offset == 0 && !hidden && album == nil
    }

    /// The fetch; an album's title is looked up in the library.
    func fetch(in library: PhotoLibrary) async throws -> FetchDescription {
        var container: ObjectID?
        if let album { container = try await Albums.find(album, in: library).id }
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
            .assets(container.map { .collection($0) } ?? .library),
            predicate: condition,
            sort: descriptors,
            limit: limit,
            offset: offset,
            includeHidden: hidden ? true : nil
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

/// Finding albums by what people call them.
enum Albums {
    /// The album with an identifier or a title.
    static func find(_ text: String, in library: PhotoLibrary) async throws -> AssetCollection {
        if let id = ObjectID(text), id.kind == .assetCollection {
            let page = try await library.collections(try Fetch(.collectionIDs(IDList([id]))).wireForm, count: 1)
            if let album = page.collections.first { return album }
            throw CommandFailure(message: "there is no album \(id)", name: "identifier_not_found")
        }
        let albums = try await titled(text, in: library)
        guard let album = albums.first else {
            throw CommandFailure(
                message: "there is no album \"\(text)\"; `safelight album list` shows those there are",
                name: "identifier_not_found"
            )
        }
        guard albums.count == 1 else {
            throw CommandFailure(
                message: "more than one album is called \"\(text)\"; name it by its identifier: "
                    + albums.map(\.id.text).joined(separator: ", "),
                name: "multiple_identifiers"
            )
        }
        return album
    }

    /// The first few albums with a title.
    static func titled(_ title: String, in library: PhotoLibrary) async throws -> [AssetCollection] {
        let predicate = try Predicate(format: "title == %@", arguments: [.string(title)], of: .assetCollection)
        let fetch = try Fetch(.collections(type: .album, subtype: nil), predicate: predicate)
        return try await library.collections(fetch.wireForm, count: 10).collections
    }
}
