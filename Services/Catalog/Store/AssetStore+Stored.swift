import PhotoModel

/// An asset and the number of its row. A reference, because an asset has many members to copy.
final class StoredAsset {
    let row: Int64
    fileprivate(set) var asset: Asset

    init(row: Int64, asset: Asset) {
        self.row = row
        self.asset = asset
    }
}

extension AssetStore {
    private static let selectionByID = "SELECT \(AssetRowMapping.selection) FROM asset a WHERE a.id = ?"
    private static let selectionByIDs = """
        SELECT \(AssetRowMapping.selection) FROM json_each(?) e JOIN asset a ON a.id = e.value
        """

    func stored(_ id: ObjectID) throws -> StoredAsset? {
        var statement = try SQLStatement(Self.selectionByID, database)
        statement.bind(id.text)
        guard try statement.step() else { return nil }
        let row = statement.currentRow.int64(0)
        var asset = try AssetRowMapping.asset(statement.currentRow)
        let hasMetadata = AssetRowMapping.marks(statement.currentRow).contains(.hasMetadata)
        try addParts(.ofOne, bind: { $0.bind(row) }) { _, add in add(&asset) }
        if hasMetadata { asset.metadata = try MetadataStore(database: database).metadata(of: row) }
        return StoredAsset(row: row, asset: asset)
    }

    /// Returns assets by identifier, read together; identifiers without an asset are left out.
    func stored(_ ids: [ObjectID]) throws -> [StoredAsset] {
        var statement = try SQLStatement(Self.selectionByIDs, database)
        statement.bind(jsonList(ids))
        var assets: [StoredAsset] = []
        assets.reserveCapacity(ids.count)
        var positions: [Int64: Int] = [:]
        positions.reserveCapacity(ids.count)
        while try statement.step() {
            let row = statement.currentRow.int64(0)
            guard positions[row] == nil else { continue }
            positions[row] = assets.count
            var asset = try AssetRowMapping.asset(statement.currentRow)
            if AssetRowMapping.marks(statement.currentRow).contains(.hasMetadata) {
                asset.metadata = try MetadataStore(database: database).metadata(of: row)
            }
            assets.append(StoredAsset(row: row, asset: asset))
        }
        let add: (Int64, (inout Asset) -> Void) -> Void = { row, add in
            if let position = positions[row] { add(&assets[position].asset) }
        }
        let rows = assets.map(\.row).sorted()
        guard let first = rows.first, let last = rows.last else { return [] }
        if last - first < 2 * Int64(rows.count) {
            // Assets that were imported together have neighbouring rows: reading a few others is cheaper than looking
            // each of them up.
            let bind: (inout SQLStatement) -> Void = {
                $0.bind(first)
                $0.bind(last)
            }
            try addParts(.ofRange, bind: bind, to: add)
        } else {
            let list = jsonList(rows)
            try addParts(.ofMany, bind: { $0.bind(list) }, to: add)
        }
        return assets
    }

    /// The statements that read resources, keywords and memberships, which other tables hold.
    private struct PartStatements {
        let resources: String
        let keywords: String
        let memberships: String

        static let ofOne = PartStatements("= ?")
        static let ofRange = PartStatements("BETWEEN ? AND ?")
        static let ofMany = PartStatements("IN (SELECT atom FROM json_each(?))")

        init(_ among: String) {
            resources = """
                SELECT r.asset, \(AssetReader.resourceColumns)
                FROM resource r WHERE r.asset \(among) ORDER BY r.asset, r.position
                """
            keywords = "SELECT asset, text FROM keyword WHERE asset \(among) ORDER BY asset, position"
            memberships = """
                SELECT m.asset, \(AssetReader.membershipColumns)
                FROM membership m JOIN collection c ON c.row = m.collection
                WHERE m.asset \(among) ORDER BY m.asset, c.id
                """
        }
    }

    /// Reads resources, keywords and memberships and passes them on by row number.
    private func addParts(
        _ statements: PartStatements,
        bind: (inout SQLStatement) -> Void,
        to add: (_ row: Int64, (inout Asset) -> Void) -> Void
    ) throws {
        var resources = try SQLStatement(statements.resources, database)
        bind(&resources)
        while try resources.step() {
            let resource = try AssetReader.resource(resources.currentRow)
            add(resources.currentRow.int64(0)) { $0.resources.append(resource) }
        }
        var keywords = try SQLStatement(statements.keywords, database)
        bind(&keywords)
        while try keywords.step() {
            let keyword = keywords.currentRow.text(1)
            add(keywords.currentRow.int64(0)) { $0.keywords.append(keyword) }
        }
        var memberships = try SQLStatement(statements.memberships, database)
        bind(&memberships)
        while try memberships.step() {
            let membership = try AssetReader.membership(memberships.currentRow)
            add(memberships.currentRow.int64(0)) { $0.memberships.append(membership) }
        }
    }
}
