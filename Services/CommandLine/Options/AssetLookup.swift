import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Looks up assets by user input: an identifier or its prefix, a file name, or a number of the last listing.
struct AssetLookup {
    /// The minimum number of characters of an identifier's prefix.
    static let minPrefixLength = 4
    /// The maximum number of assets that an error message lists.
    private static let maxListed = 10
    /// The maximum number of references that are looked up together. Each name has two conditions, and a predicate has
    /// at most 256.
    static let batchSize = 100
    /// The condition of a name: "IMG_1" is IMG_1.jpg and IMG_1.heic, but not IMG_10.jpg.
    private static let nameCondition = "originalFilename == %@ OR originalFilename BEGINSWITH %@"

    let library: PhotoLibrary
    let listing: LastListing

    init(in library: PhotoLibrary, listing: LastListing = LastListing()) {
        self.library = library
        self.listing = listing
    }

    /// Returns the assets that a reference names: one, or several for a range such as `@2-5`.
    ///
    /// - Throws: ``CommandFailure`` if there is none, or more than one with the name or the prefix
    func ids(_ text: String) async throws -> [ObjectID] {
        if let id = ObjectID(text) {
            guard id.kind == .asset else { throw CommandFailure.usage("\(id) is an identifier of another kind") }
            return [id]
        }
        if text.hasPrefix("@") { return try listing.ids(text) }
        return [try await named(text)]
    }

    /// Returns the assets of several references in their order. Names are looked up together, because the catalog
    /// searches the whole library for each request.
    ///
    /// - Throws: as ``ids(_:)-(String)``
    func ids(_ texts: [String]) async throws -> [ObjectID] {
        let unique = try await unique(Set(texts.filter(Self.isName)))
        var ids: [ObjectID] = []
        for text in texts {
            if let id = unique[text] { ids.append(id) } else { ids += try await self.ids(text) }
        }
        return ids
    }

    /// Returns the assets of those names that exactly one asset has; others have to be looked up one by one.
    private func unique(_ names: Set<String>) async throws -> [String: ObjectID] {
        guard names.count > 1 else { return [:] }
        let predicate = try Predicate(
            format: Array(repeating: Self.nameCondition, count: names.count).joined(separator: " OR "),
            arguments: names.flatMap { [JSON.string($0), .string($0 + ".")] },
            of: .asset
        )
        let fetch = try Fetch(.assets(.library), predicate: predicate, includeHidden: true)
        let page = try await library.assets(fetch.wireForm, members: AssetMembers.name, count: FetchAssets.maxPage)
        // Without the other assets it is unknown which names are unique.
        guard page.assets.count == page.count else { return [:] }
        var found: [String: [ObjectID]] = [:]
        for asset in page.assets {
            let matches = Self.names(ofFile: asset.originalFilename ?? "").filter(names.contains)
            guard !matches.isEmpty else { return [:] }
            for name in matches { found[name, default: []].append(asset.id) }
        }
        return found.compactMapValues { $0.count == 1 ? $0.first : nil }
    }

    /// Returns the names by which a file is found: the whole name, and the part before each of its dots.
    static func names(ofFile name: String) -> [String] {
        let scalars = name.unicodeScalars
        return [name] + scalars.indices.filter { scalars[$0] == "." }.map { String(scalars[..<$0]) }
    }

    private static func isName(_ text: String) -> Bool {
        ObjectID(text) == nil && !text.hasPrefix("@") && !isPrefix(text) && text.utf8.count <= TextLimit.filename
    }

    private func named(_ text: String) async throws -> ObjectID {
        var found = Found()
        if Self.isPrefix(text) {
            found = try await find("localIdentifier BEGINSWITH %@", [text])
        }
        if found.assets.isEmpty {
            found = try await find(Self.nameCondition, [text, text + "."])
            if found.count > 1, let id = try await nearest(text, inTrash: found.areInTrash) { return id }
        }
        guard let first = found.assets.first else {
            throw CommandFailure(
                message: "no asset has the file name or the identifier \"\(text.prefix(80))\"; `safelight fetch` lists "
                    + "the assets",
                name: ErrorCode.identifierNotFound.rawValue
            )
        }
        guard found.count == 1 else {
            let names = found.assets.map { "\($0.id) (\($0.originalFilename ?? "-"))" }
            throw CommandFailure(
                message: "\"\(text.prefix(80))\" is not unique; use one of these identifiers: "
                    + QuantityFormatter.list(names, of: found.count),
                name: ErrorCode.multipleIdentifiers.rawValue
            )
        }
        return first.id
    }

    /// Returns the only asset with the whole name, else the only one with the name and one extension; nil if there is
    /// none or several: "IMG_1" is IMG_1.jpg also if there is an IMG_1.edited.jpg.
    private func nearest(_ text: String, inTrash: Bool) async throws -> ObjectID? {
        let exact = try await find("originalFilename == %@", [text], inTrash: [inTrash])
        guard exact.count == 0 else { return exact.count == 1 ? exact.assets.first?.id : nil }
        let all = try await find(
            Self.nameCondition,
            [text, text + "."],
            inTrash: [inTrash],
            count: FetchAssets.maxPage
        )
        guard all.assets.count == all.count else { return nil }
        let matches = all.assets.filter { FileGrouping.parts($0.originalFilename ?? "").stem == text }
        return matches.count == 1 ? matches.first?.id : nil
    }

    /// The first assets that match, with their names, and the number of all matches.
    private struct Found {
        var assets: [Asset] = []
        var count = 0
        var areInTrash = false
    }

    /// Searches the library, and if no asset matches, the trash.
    private func find(
        _ format: String,
        _ arguments: [String],
        inTrash trashValues: [Bool] = [false, true],
        count: Int = Self.maxListed
    ) async throws -> Found {
        let predicate = try Predicate(format: format, arguments: arguments.map { .string($0) }, of: .asset)
        for inTrash in trashValues {
            let fetch = try Fetch(
                .assets(.library),
                predicate: predicate,
                includeHidden: true,
                inTrash: inTrash ? true : nil
            )
            let page = try await library.assets(fetch.wireForm, members: AssetMembers.name, count: count)
            if !page.assets.isEmpty { return Found(assets: page.assets, count: page.count, areInTrash: inTrash) }
        }
        return Found()
    }

    /// Returns true if a text can be the prefix of an asset's identifier.
    static func isPrefix(_ text: String) -> Bool {
        guard (minPrefixLength..<ObjectID.length).contains(text.utf8.count) else { return false }
        let filled = text + String(repeating: "0", count: ObjectID.length - text.utf8.count)
        return ObjectID(filled)?.kind == .asset
    }
}
