import PhotoModel

/// Reads the result keys of a complete fetch, within one read of the database. They equal ``Fetch/resultKey(of:)``, but
/// whole entities are read only if the sort order needs more than columns.
struct FetchKeyStore {
    let database: SQLConnection

    /// The number of rows whose keys are read by one statement.
    private static let batch = 5000

    /// Calls `visit` with each key in the order of the fetch, ignoring its offset and limit.
    ///
    /// - Parameter visit: called with each key; throws to stop
    /// - Returns: false if the collection that the fetch refers to does not exist
    func each(_ fetch: Fetch, _ visit: (ResultKey) throws -> Void) throws -> Bool {
        let whole = fetch.whole
        guard case .assets(let source) = whole.kind else { return try eachCollection(whole, visit) }
        guard let rows = try FetchStore(database: database).assetRows(whole, .init()) else { return false }
        try each(rows, of: whole, source) { try visit($1) }
        return true
    }

    /// Calls `visit` with each of the rows of a result of assets and its key.
    func each(
        _ rows: [Int64],
        of fetch: Fetch,
        _ source: FetchKind.AssetSource,
        _ visit: (Int64, ResultKey) throws -> Void
    ) throws {
        for start in stride(from: 0, to: rows.count, by: Self.batch) {
            try database.checkCancellation()
            let part = Array(rows[start..<min(start + Self.batch, rows.count)])
            let keys = try keys(of: part, fetch, source)
            for row in part {
                guard let key = keys[row] else { throw DamagedRow("row \(row) has no key") }
                try visit(row, key)
            }
        }
    }

    /// - Parameter count: the number of columns after the row number and the identifier
    private func keys(
        _ sql: String,
        _ values: [SQLValue],
        _ fetch: Fetch,
        columns count: Int = 1
    ) throws -> [Int64: ResultKey] {
        var keys: [Int64: ResultKey] = [:]
        try database.each(SQLFragment(sql, values)) { row in
            let values = (0..<count).map { index -> PredicateValue in
                switch row.value(Int32(index + 2)) {
                case .null, .bytes: .null
                case .integer(let number): .integer(number)
                case .number(let number): .number(number)
                case .text(let text): .text(text)
                }
            }
            keys[row.int64(0)] = fetch.resultKey(values, id: try AssetRowMapping.identifier(row.text(1)))
        }
        return keys
    }

    private static let sortable = AssetProjection(members: ["metadata"])

    private func keys(of rows: [Int64], _ fetch: Fetch, _ source: FetchKind.AssetSource) throws -> [Int64: ResultKey] {
        let list = jsonList(rows)
        let among = "IN (SELECT atom FROM json_each(?))"
        switch (fetch.orderValues, source) {
        case (.sorted(let sort), _) where sort.allSatisfy({ !$0.key.isText }):
            let columns = sort.map { ", " + PredicateTable.asset.column($0.key) }.joined()
            let sql = "SELECT a.row, a.id\(columns) FROM asset a WHERE a.row \(among)"
            return try keys(sql, [.text(list)], fetch, columns: sort.count)
        case (.date, _):
            return try keys("SELECT a.row, a.id, a.added_date FROM asset a WHERE a.row \(among)", [.text(list)], fetch)
        case (.captureDate, _):
            return try keys(
                "SELECT a.row, a.id, a.creation_date FROM asset a WHERE a.row \(among)",
                [.text(list)],
                fetch
            )
        case (.orderKey, .collection(let id)):
            guard let collection = try CollectionStore(database: database).rowNumber(of: id) else { return [:] }
            let sql = """
                SELECT a.row, a.id, m.order_key FROM membership m JOIN asset a ON a.row = m.asset
                WHERE m.collection = ? AND m.asset \(among)
                """
            return try keys(sql, [.integer(collection), .text(list)], fetch)
        default:
            // A text column may not return its text unchanged, so these keys come from the assets. No sort key needs
            // resources, keywords or memberships.
            var keys: [Int64: ResultKey] = [:]
            keys.reserveCapacity(rows.count)
            try AssetReader(database: database, projection: Self.sortable).each(rows) {
                keys[$0] = fetch.resultKey(of: $1)
            }
            return keys
        }
    }

    private func eachCollection(_ fetch: Fetch, _ visit: (ResultKey) throws -> Void) throws -> Bool {
        guard let found = try CollectionFetchStore(database: database).page(fetch, .init()) else { return false }
        for object in found.objects { try visit(fetch.resultKey(of: object)) }
        return true
    }
}

extension PredicateKey {
    fileprivate var isText: Bool { type == .text }
}
