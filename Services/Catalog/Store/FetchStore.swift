import GRDB
import PhotoModel

/// Fetches as SQL, within one read of the database. The same answers as `Fetch` gives in memory.
struct FetchStore {
    let database: Database

    /// The rows of a page, the count of the whole, or both; limit and offset are the fetch's own.
    struct Window {
        var from = 0
        /// Nil: to the end.
        var count: Int?
    }

    // MARK: Assets

    /// Row numbers in the order of the fetch.
    ///
    /// - Returns: nil where the collection it is about does not exist
    func assetRows(_ fetch: Fetch, _ window: Window) throws -> [Int64]? {
        guard let query = try assetQuery(fetch) else { return nil }
        let piece = "SELECT a.row FROM " + query.source + query.order + Self.limit(fetch, window)
        let statement = try database.makeStatement(sql: piece.text)
        return try Int64.fetchAll(statement, arguments: StatementArguments(piece.values))
    }

    /// How many the fetch has, after offset and limit.
    func assetCount(_ fetch: Fetch) throws -> Int? {
        guard let query = try assetQuery(fetch) else { return nil }
        let all: Int
        if fetch.countsAsVisible, case .assets(.library) = fetch.kind, fetch.predicate == nil {
            let name = fetch.mediaType.map { "visible.\($0.rawValue)" } ?? "visible"
            all = try CounterChanges.value(of: name, database)
        } else {
            let piece = "SELECT count(*) FROM " + query.source
            let statement = try database.makeStatement(sql: piece.text)
            all = try Int.fetchOne(statement, arguments: StatementArguments(piece.values)) ?? 0
        }
        return fetch.windowed(all)
    }

    private struct Query {
        var source: SQLPiece
        var order: SQLPiece
    }

    private func assetQuery(_ fetch: Fetch) throws -> Query? {
        guard case .assets(let kind) = fetch.kind else { return nil }
        var source = SQLPiece("asset a")
        var conditions: [SQLPiece] = []
        var order = "a.added_date, a.id"
        var isShown: String?
        switch kind {
        case .library: break
        case .ids(let list):
            source = SQLPiece(
                "json_each(?) e CROSS JOIN asset a ON a.id = e.value",
                [jsonList(list.ids.map(\.text)).databaseValue]
            )
            order = "e.key"
        case .collection(let id):
            guard let row = try CollectionStore(database: database).rowNumber(of: id) else { return nil }
            source = SQLPiece("membership m JOIN asset a ON a.row = m.asset")
            conditions.append(SQLPiece("m.collection = ?", [row.databaseValue]))
            order = "m.order_key"
            isShown = "m.shown = 1"
        case .burst(let burst): conditions.append("a.burst_identifier = " + .bound(burst))
        }
        if fetch.countsAsVisible {
            conditions.append(SQLPiece("a.visible = 1"))
        } else if let isShown, fetch.countsAsShown {
            conditions.append(SQLPiece(isShown))
        } else {
            conditions.append(SQLPiece("a.trashed_date IS NULL"))
            if !fetch.includeHidden { conditions.append(SQLPiece("a.is_hidden = 0")) }
            if !fetch.includeAllBurstAssets {
                conditions.append(
                    SQLPiece(
                        """
                        (a.burst_identifier IS NULL OR a.represents_burst = 1
                            OR (a.burst_selection_types & \(BurstSelectionTypes.userPick.rawValue)) <> 0)
                        """
                    )
                )
            }
            if fetch.sourceTypes != .all {
                conditions.append(SQLPiece("(a.source_type & ?) <> 0", [fetch.sourceTypes.rawValue.databaseValue]))
            }
        }
        if let type = fetch.mediaType {
            conditions.append(SQLPiece("a.media_type = ?", [type.number.databaseValue]))
        }
        if let predicate = fetch.predicate {
            conditions.append(PredicateLowering(table: .asset).lower(predicate.root))
        }
        return Query(
            source: source + " WHERE " + .joined(conditions, " AND "),
            order: SQLPiece(" ORDER BY " + (Self.order(fetch.sort, .asset, id: "a.id") ?? order))
        )
    }

    // MARK: Collections

    /// Collections in the order of the fetch, and how many there are.
    func collections(_ fetch: Fetch, _ window: Window) throws -> (collections: [AssetCollection], count: Int)? {
        var conditions = [SQLPiece("1")]
        var prefix = SQLPiece("")
        var order = "c.creation_date, c.id"
        switch fetch.kind {
        case .collections(let type, let subtype):
            if let type { conditions.append(SQLPiece("c.type = ?", [type.number.databaseValue])) }
            if let subtype { conditions.append(SQLPiece("c.subtype = ?", [subtype.number.databaseValue])) }
        case .collectionIDs(let list):
            prefix = SQLPiece("json_each(?) e CROSS JOIN ", [jsonList(list.ids.map(\.text)).databaseValue])
            conditions.append(SQLPiece("c.id = e.value"))
            order = "e.key"
        case .children(let parent):
            guard try CollectionStore(database: database).list(parent) != nil else { return nil }
            conditions.append(SQLPiece("p.id = ?", [parent.text.databaseValue]))
            order = "c.parent_key, c.id"
        case .assets, .lists, .listIDs: return nil
        }
        if let predicate = fetch.predicate {
            conditions.append(PredicateLowering(table: .collection).lower(predicate.root))
        }
        let source = prefix + CollectionStore.collectionSource + " WHERE " + .joined(conditions, " AND ")
        let count = "SELECT count(*) FROM " + source
        let all = try Int.fetchOne(
            try database.makeStatement(sql: count.text),
            arguments: StatementArguments(count.values)
        )
        let page =
            "SELECT \(CollectionStore.collectionColumns) FROM " + source + " ORDER BY "
            + (Self.order(fetch.sort, .collection, id: "c.id") ?? order) + Self.limit(fetch, window)
        let rows = try Row.fetchCursor(
            try database.makeStatement(sql: page.text),
            arguments: StatementArguments(page.values)
        )
        var collections: [AssetCollection] = []
        while let row = try rows.next() { collections.append(try CollectionStore.collection(row)) }
        return (collections, fetch.windowed(all ?? 0))
    }

    // MARK: Parts

    private static func order(_ sort: [SortDescriptor], _ table: PredicateTable, id: String) -> String? {
        guard !sort.isEmpty else { return nil }
        let keys = sort.map { descriptor in
            "\(table.column(descriptor.key)) \(descriptor.ascending ? "ASC" : "DESC")"
                + (descriptor.key.isOptional && descriptor.ascending ? " NULLS LAST" : "")
        }
        return (keys + [id]).joined(separator: ", ")
    }

    private static func limit(_ fetch: Fetch, _ window: Window) -> SQLPiece {
        let (from, overflow) = fetch.offset.addingReportingOverflow(window.from)
        var count = window.count ?? Int.max
        if fetch.limit > 0 { count = min(count, max(0, fetch.limit - window.from)) }
        if overflow { count = 0 }
        return SQLPiece(
            " LIMIT ? OFFSET ?",
            [count.databaseValue, (overflow ? Int.max : from).databaseValue]
        )
    }
}

extension Fetch {
    /// Whether the maintained flag of assets answers which are left out.
    var countsAsVisible: Bool { !includeHidden && !includeAllBurstAssets && sourceTypes == .userLibrary }

    /// Whether the maintained flag of memberships answers which are left out.
    var countsAsShown: Bool { !includeHidden && !includeAllBurstAssets && sourceTypes == .all }

    /// A count after offset and limit.
    func windowed(_ all: Int) -> Int {
        let left = max(0, all - min(offset, all))
        return limit > 0 ? min(limit, left) : left
    }
}
