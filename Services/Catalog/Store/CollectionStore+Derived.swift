import PhotoModel

/// Queries that the rules of derived collections and of ordered members need.
extension CollectionStore {
    // MARK: Order keys

    /// Returns the member that follows an order key in an album, or the first member if the key is nil.
    func member(after key: OrderKey?, in collection: ObjectID) throws -> (id: ObjectID, key: OrderKey)? {
        try database.first(
            """
            SELECT a.id, m.order_key FROM membership m JOIN asset a ON a.row = m.asset
            WHERE m.collection = (SELECT row FROM collection WHERE id = ?) AND m.order_key > ?
            ORDER BY m.order_key LIMIT 1
            """,
            collection.text,
            key?.text ?? ""
        ) {
            (try AssetRowMapping.identifier($0[0]), try AssetRowMapping.orderKey($0[1]))
        }
    }

    /// Returns the album or folder that follows an order key in a folder, or the first one if the key is nil.
    func child(after key: OrderKey?, in list: ObjectID) throws -> (id: ObjectID, key: OrderKey)? {
        let children = try ["collection", "list"].compactMap { table -> (id: ObjectID, key: OrderKey)? in
            try database.first(
                """
                SELECT id, parent_key FROM \(table)
                WHERE parent = (SELECT row FROM list WHERE id = ?) AND parent_key > ? ORDER BY parent_key LIMIT 1
                """,
                list.text,
                key?.text ?? ""
            ) {
                (try AssetRowMapping.identifier($0[0]), try AssetRowMapping.orderKey($0[1]))
            }
        }
        return children.min { ($0.key, $0.id) < ($1.key, $1.id) }
    }

    // MARK: Folders

    /// Returns the number of levels of folders below a folder, counted up to `limit`; 0 without any.
    func levels(below list: ObjectID, limit: Int) throws -> Int {
        try database.first(
            """
            WITH RECURSIVE below (row, depth) AS (
                SELECT row, 0 FROM list WHERE id = ?
                UNION ALL SELECT l.row, b.depth + 1 FROM list l JOIN below b ON l.parent = b.row
                WHERE b.depth < \(limit))
            SELECT coalesce(max(depth), 0) FROM below
            """,
            list.text
        ) { $0.int(0) } ?? 0
    }

    // MARK: Moments

    /// Returns the earliest and latest capture date of a moment's assets that are not in `excluded`; nil without any.
    func captureDates(of moment: Moment, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>? {
        let dates = try ["ASC", "DESC"].compactMap { direction -> Int64? in
            try first(
                "SELECT creation_date, id FROM asset WHERE moment = ? ORDER BY creation_date \(direction)",
                moment.key,
                excluded
            )
        }
        guard dates.count == 2 else { return nil }
        return dates[0]...dates[1]
    }

    /// Returns the earliest start date and the latest end date of a list's moments that are not in `excluded`; nil
    /// without any.
    func momentDates(in list: MomentList, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>? {
        let column = list.column
        let earliest = "SELECT start_date, id FROM collection WHERE \(column) = ? ORDER BY start_date"
        let latest = "SELECT end_date, id FROM collection WHERE \(column) = ? ORDER BY start_date DESC"
        guard let start = try first(earliest, list.key, excluded),
            var end = try first(latest, list.key, excluded)
        else { return nil }
        // The moment that starts last need not end last. A moment is a local day, and the offsets of its assets are
        // between -24 and 24 hours, so it is at most three days long: a moment that ends later starts after this time.
        var rows = try SQLStatement(
            "SELECT end_date, id FROM collection WHERE \(column) = ? AND start_date >= ?",
            database
        )
        rows.bind(list.key)
        rows.bind(end - 3 * 86_400_000_000)
        while try rows.step() {
            let row = rows.currentRow
            if !excluded.contains(try AssetRowMapping.identifier(row.text(1))) { end = max(end, row.int64(0)) }
        }
        return start...end
    }

    /// Returns the date of the first row whose identifier, the second column, is not in `excluded`.
    private func first(
        _ sql: String,
        _ value: some SQLBindable,
        _ excluded: Set<ObjectID>
    ) throws -> Int64? {
        var rows = try SQLStatement(sql + " LIMIT ?", database)
        value.bind(to: &rows)
        // At most all excluded rows precede the first other one.
        rows.bind(excluded.count + 1)
        while try rows.step() {
            if !excluded.contains(try AssetRowMapping.identifier(rows.currentRow.text(1))) {
                return rows.currentRow.int64(0)
            }
        }
        return nil
    }

    // MARK: Time

    /// Returns assets that count as recently added and were added before a date, oldest first.
    func recentlyAdded(before date: Int64, limit: Int) throws -> [ObjectID] {
        // Hidden and trashed assets are included, so two ranges of one index are read.
        try [1, 0].flatMap { visible in
            try database.all(
                """
                SELECT a.id FROM asset a WHERE \(DerivedSchema.condition(.recentlyAdded)) AND a.visible = \(visible)
                AND a.added_date < ? ORDER BY a.added_date, a.id LIMIT ?
                """,
                date,
                limit
            ) { $0.text(0) }.map(AssetRowMapping.identifier)
        }.prefix(limit).map { $0 }
    }

    /// Returns assets that were moved to the trash before a date, oldest first.
    func trashed(before date: Int64, limit: Int) throws -> [ObjectID] {
        try database.all(
            "SELECT id FROM asset WHERE trashed_date < ? ORDER BY trashed_date, id LIMIT ?",
            date,
            limit
        ) { $0.text(0) }.map(AssetRowMapping.identifier)
    }

    // MARK: Smart albums

    /// Creates the missing rows of the smart albums, which no transaction changes.
    func createMissingSmartAlbums(date: Int64) throws {
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
    /// The column of a moment's row that holds the key of its list of this kind.
    var column: String {
        switch self {
        case .cluster: "cluster"
        case .year: "year"
        }
    }
}
