import Contracts
import JSONValue
import PhotoClient
import PhotoModel

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
