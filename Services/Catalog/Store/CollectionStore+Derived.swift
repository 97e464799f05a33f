import GRDB
import PhotoModel

/// What the rules of derived collections and of ordered members ask of the database.
extension CollectionStore {
    // MARK: Places

    /// The member after a place in an album, or the first.
    func member(after key: OrderKey?, in collection: ObjectID) throws -> (id: ObjectID, key: OrderKey)? {
        let statement = try database.cachedStatement(
            sql: """
                SELECT a.id, m.order_key FROM membership m JOIN asset a ON a.row = m.asset
                WHERE m.collection = (SELECT row FROM collection WHERE id = ?) AND m.order_key > ?
                ORDER BY m.order_key LIMIT 1
                """
        )
        return try Row.fetchOne(statement, arguments: [collection.text, key?.text ?? ""]).map {
            (try AssetRowStore.identifier($0[0]), try AssetRowStore.orderKey($0[1]))
        }
    }

    /// The album or folder after a place in a folder, or the first.
    func child(after key: OrderKey?, in list: ObjectID) throws -> (id: ObjectID, key: OrderKey)? {
        let children = try ["collection", "list"].compactMap { table -> (id: ObjectID, key: OrderKey)? in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT id, parent_key FROM \(table)
                    WHERE parent = (SELECT row FROM list WHERE id = ?) AND parent_key > ? ORDER BY parent_key LIMIT 1
                    """
            )
            return try Row.fetchOne(statement, arguments: [list.text, key?.text ?? ""]).map {
                (try AssetRowStore.identifier($0[0]), try AssetRowStore.orderKey($0[1]))
            }
        }
        return children.min { ($0.key, $0.id) < ($1.key, $1.id) }
    }

    // MARK: Moments

    /// Earliest and latest capture date in a moment, of assets that are not among `excluded`.
    func captureDates(of moment: Moment, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>? {
        let dates = try ["ASC", "DESC"].compactMap { direction -> Int64? in
            let statement = try database.cachedStatement(
                sql: "SELECT creation_date, id FROM asset WHERE moment = ? ORDER BY creation_date \(direction)"
            )
            return try first(Row.fetchCursor(statement, arguments: [moment.key]), excluded)
        }
        guard dates.count == 2 else { return nil }
        return dates[0]...dates[1]
    }

    /// Earliest first and latest last capture date of the moments in a list that are not among `excluded`.
    func momentDates(in list: MomentList, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>? {
        let column = list.column
        // Moments hold a day each, so that the last to begin is near the last to end; several places share a day.
        let first = try database.cachedStatement(
            sql: "SELECT start_date, id FROM collection WHERE \(column) = ? ORDER BY start_date"
        )
        guard let start = try self.first(Row.fetchCursor(first, arguments: [list.key]), excluded) else { return nil }
        let last = try database.cachedStatement(
            sql: "SELECT end_date, id, start_date FROM collection WHERE \(column) = ? ORDER BY start_date DESC"
        )
        var end = start
        let rows = try Row.fetchCursor(last, arguments: [list.key])
        while let row = try rows.next() {
            // No moment is longer than a day.
            if (row[2] as Int64) + 86_400_000_000 < end { break }
            if !excluded.contains(try AssetRowStore.identifier(row[1])) { end = max(end, row[0]) }
        }
        return start...end
    }

    private func first(_ rows: RowCursor, _ excluded: Set<ObjectID>) throws -> Int64? {
        while let row = try rows.next() {
            if !excluded.contains(try AssetRowStore.identifier(row[1])) { return row[0] }
        }
        return nil
    }

    // MARK: Time

    /// Assets that count as recently added and were added before a moment.
    func recentlyAdded(before date: Int64, limit: Int) throws -> [ObjectID] {
        // Hidden ones and those in the trash too: one index, two ranges.
        try [1, 0].flatMap { visible in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT a.id FROM asset a WHERE \(DerivedSchema.condition(.recentlyAdded)) AND a.visible = \(visible)
                    AND a.added_date < ? ORDER BY a.added_date, a.id LIMIT ?
                    """
            )
            return try String.fetchAll(statement, arguments: [date, limit]).map(AssetRowStore.identifier)
        }.prefix(limit).map { $0 }
    }

    /// Assets that went to the trash before a moment.
    func trashed(before date: Int64, limit: Int) throws -> [ObjectID] {
        let statement = try database.cachedStatement(
            sql: "SELECT id FROM asset WHERE trashed_date < ? ORDER BY trashed_date, id LIMIT ?"
        )
        return try String.fetchAll(statement, arguments: [date, limit]).map(AssetRowStore.identifier)
    }

    // MARK: Smart albums

    /// Makes the rows of the smart albums, which no transaction changes.
    func beginSmartAlbums(date: Int64) throws {
        for smart in SmartAlbum.allCases {
            guard try rowNumber(of: smart.id) == nil else { continue }
            var album = AssetCollection(smart)
            album.creationDate = date
            album.modificationDate = date
            try save([EntityChange(before: nil, after: album)])
        }
    }
}

extension MomentList {
    /// The column of a moment's row that names its list of this kind.
    var column: String {
        switch self {
        case .cluster: "cluster"
        case .year: "year"
        }
    }
}
