import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Assets as arguments, or `-` to read them from standard input, one per line.
struct AssetArguments: ParsableArguments {
    @Argument(
        help: "Assets: identifiers, file names, @3 of the last listing, or - to read them from standard input.",
        completion: Completions.assets
    )
    var ids: [String]

    /// Returns the identifiers of the assets that were given.
    func read(in library: PhotoLibrary) async throws -> [ObjectID] { try await Self.read(ids, in: library) }

    /// The maximum number of identifiers.
    static let limit = 1_000_000

    /// Looks up assets in the given order and without duplicates.
    ///
    /// - Parameter input: returns the next line of standard input, or nil at its end
    static func read(
        _ arguments: [String],
        in library: PhotoLibrary,
        input: () -> String? = { readLine() }
    ) async throws -> [ObjectID] {
        let assets = AssetReference(in: library)
        var ids: [ObjectID] = []
        for argument in arguments {
            if argument == "-" {
                while let line = input() {
                    if let text = reference(inLine: line) { ids += try await assets.ids(text) }
                    guard ids.count <= limit else { throw CommandFailure.usage("more than \(limit) identifiers") }
                }
            } else {
                ids += try await assets.ids(argument)
            }
        }
        return IDList(ids).ids
    }

    /// Returns the identifier in a row of `safelight fetch`, else the whole line without the space around it, because a
    /// file name may have spaces; nil for an empty line and for the heading of `safelight fetch`.
    static func reference(inLine line: String) -> String? {
        let words = line.split(whereSeparator: \.isWhitespace)
        if words.count > 1, words[0].wholeMatch(of: /@[0-9]+/) != nil, ObjectID(String(words[1])) != nil {
            return String(words[1])
        }
        guard let first = words.first, let last = words.last, words != FetchCommand.titles else { return nil }
        return String(line[first.startIndex..<last.endIndex])
    }

    /// Looks up the only asset that an argument names.
    static func one(_ text: String, in library: PhotoLibrary) async throws -> ObjectID {
        let ids = try await AssetReference(in: library).ids(text)
        guard let id = ids.first, ids.count == 1 else {
            throw CommandFailure.usage("\"\(text.prefix(40))\" are \(ids.count) assets; this command takes one")
        }
        return id
    }
}

// MARK: - Lookup

/// Looks up assets by what people type: an identifier or its beginning, a file name, or a number of the last listing.
struct AssetReference {
    /// The fewest characters of an identifier's beginning.
    static let shortestPrefix = 4
    /// The assets that an error message lists.
    private static let listed = 10

    let library: PhotoLibrary
    let listing: LastListing

    init(in library: PhotoLibrary, listing: LastListing = LastListing()) {
        self.library = library
        self.listing = listing
    }

    /// Returns the assets that a reference names: one, or several for a range such as `@2-5`.
    ///
    /// - Throws: ``CommandFailure`` if there is none, or more than one with the name or the beginning
    func ids(_ text: String) async throws -> [ObjectID] {
        if let id = ObjectID(text) {
            guard id.kind == .asset else { throw CommandFailure.usage("\(id) is an identifier of another kind") }
            return [id]
        }
        if text.hasPrefix("@") { return try listing.ids(text) }
        return [try await named(text)]
    }

    private func named(_ text: String) async throws -> ObjectID {
        var found: [Asset] = []
        if Self.isPrefix(text) {
            found = try await find("localIdentifier BEGINSWITH %@", [text])
        }
        if found.isEmpty {
            // "IMG_1" is IMG_1.jpg and IMG_1.heic, but not IMG_10.jpg.
            found = try await find("originalFilename == %@ OR originalFilename BEGINSWITH %@", [text, text + "."])
        }
        guard let first = found.first else {
            throw CommandFailure(
                message: "no asset has the file name or the identifier \"\(text.prefix(80))\"; `safelight fetch` lists "
                    + "the assets",
                name: ErrorCode.identifierNotFound.rawValue
            )
        }
        guard found.count == 1 else {
            let names = found.prefix(Self.listed).map { "\($0.id) (\($0.originalFilename ?? "-"))" }
            throw CommandFailure(
                message: "\"\(text.prefix(80))\" is not unique; use one of these identifiers: "
                    + names.joined(separator: ", ") + (found.count > names.count ? ", …" : ""),
                name: ErrorCode.multipleIdentifiers.rawValue
            )
        }
        return first.id
    }

    /// Searches the library, and the trash if there is nothing.
    private func find(_ format: String, _ arguments: [String]) async throws -> [Asset] {
        let predicate = try Predicate(format: format, arguments: arguments.map { .string($0) }, of: .asset)
        for inTrash in [false, true] {
            let fetch = try Fetch(
                .assets(.library),
                predicate: predicate,
                includeHidden: true,
                inTrash: inTrash ? true : nil
            )
            let assets = try await library.assets(fetch.wireForm, count: Self.listed + 1).assets
            if !assets.isEmpty { return assets }
        }
        return []
    }

    /// True if a text can be the beginning of an asset's identifier.
    static func isPrefix(_ text: String) -> Bool {
        guard (shortestPrefix..<ObjectID.length).contains(text.utf8.count) else { return false }
        let filled = text + String(repeating: "0", count: ObjectID.length - text.utf8.count)
        return ObjectID(filled)?.kind == .asset
    }
}

extension PhotoLibrary {
    /// Returns the asset that a command names by its identifier, also one in the trash, and the page it was read from.
    ///
    /// - Throws: `identifier_not_found`
    func namedAsset(_ id: ObjectID) async throws(RPCError) -> (asset: Asset, page: FetchAssets.Result) {
        var fetch = FetchDescription(.assets)
        fetch.ids = [id]
        for inTrash in [nil, true] {
            fetch.inTrash = inTrash
            let page = try await assets(fetch, count: 1)
            if let asset = page.assets.first { return (asset, page) }
        }
        throw ErrorCode.identifierNotFound.error("there is no asset \(id)", ["id": .string(id.text)])
    }
}
