import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Assets by their identifiers, in this order, also those in the trash. One request reads many of them.
struct NamedAssets {
    /// A requested asset.
    struct Entry {
        let id: ObjectID
        /// The asset; nil if there is none with the identifier.
        let asset: Asset?
        /// Its quarantined files, if the asset was read with its resources.
        let quarantined: [QuarantinedResource]
    }

    private let library: PhotoLibrary
    private let ids: [ObjectID]
    private let members: [String]?
    private let pieceSize: Int
    private var index = 0
    /// The index after the last piece that was read.
    private var end = 0
    private var assets: [ObjectID: Asset] = [:]
    private var quarantined: [QuarantinedResource] = []

    /// - Parameters:
    ///   - members: the names of the members of each asset, with `id`, see ``AssetMembers``; nil for all
    ///   - pieceSize: assets that are read at a time and kept in memory, 1...1,000
    init(_ ids: [ObjectID], in library: PhotoLibrary, members: [String]? = nil, pieceSize: Int = 100) {
        (self.ids, self.library, self.members) = (ids, library, members)
        self.pieceSize = max(1, min(pieceSize, FetchAssets.maxPage))
    }

    /// Returns the entry of the next identifier; nil after the last.
    mutating func next() async throws(RPCError) -> Entry? {
        guard index < ids.count else { return nil }
        if index == end { try await readPiece() }
        let id = ids[index]
        index += 1
        let asset = assets[id]
        let digests = Set(asset?.resources.map(\.digest) ?? [])
        return Entry(id: id, asset: asset, quarantined: quarantined.filter { digests.contains($0.digest) })
    }

    private mutating func readPiece() async throws(RPCError) {
        let piece = Array(ids[index..<min(index + pieceSize, ids.count)])
        end += piece.count
        (assets, quarantined) = ([:], [])
        var missing: Set<ObjectID> = []
        for inTrash in [nil, true] as [Bool?] {
            var fetch = FetchDescription(.assets)
            let remaining = piece.filter { assets[$0] == nil && !missing.contains($0) }
            guard !remaining.isEmpty else { return }
            fetch.ids = remaining
            fetch.inTrash = inTrash
            var pages = AssetPages(fetch, in: library, members: members, pageSize: pieceSize)
            while let page = try await pages.next() {
                for asset in page.assets { assets[asset.id] = asset }
                quarantined += page.quarantined
                missing.formUnion(page.missing)
            }
        }
    }

    /// Returns the error for an identifier that no asset has.
    static func noAsset(_ id: ObjectID) -> RPCError {
        ErrorCode.identifierNotFound.error("there is no asset \(id)", ["id": .string(id.text)])
    }
}

extension PhotoLibrary {
    /// Returns the asset that a command names by its identifier, also one in the trash.
    ///
    /// - Parameter members: the names of its members, with `id`, see ``AssetMembers``; nil for all
    /// - Throws: `identifier_not_found`
    func namedAsset(_ id: ObjectID, members: [String]? = nil) async throws(RPCError) -> Asset {
        var named = NamedAssets([id], in: self, members: members)
        guard let asset = try await named.next()?.asset else { throw NamedAssets.noAsset(id) }
        return asset
    }
}
