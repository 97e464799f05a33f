import PhotoModel

/// Runs asset fetches as SQL, within one read of the database. Its results are those of evaluating ``Fetch`` in memory.
struct FetchStore {
    let database: SQLConnection

    // MARK: Assets

    /// Returns row numbers in the order of the fetch.
    ///
    /// - Returns: nil if the collection that the fetch refers to does not exist
    func assetRows(_ fetch: Fetch, _ range: PageRange) throws -> [Int64]? {
        if database.dialect == .postgresql, let predicate = predicateInMemory(of: fetch) {
            return try filteredRows(fetch, predicate)?.page(fetch, range)
        }
        let strategy = try QueryStrategy(fetch, range, database)
        if strategy == .bySortOrder, let query = try assetQuery(fetch, strategy),
            let rows = try LibraryOrderStore(database: database).rows(fetch, range, query.conditions)
        {
            return rows
        }
        guard let query = try pageQuery(fetch, range, strategy) else { return nil }
        return try database.all(query) { $0.int64(0) }
    }

    /// Returns the number of assets after offset and limit; nil if the collection does not exist.
    func assetCount(_ fetch: Fetch) throws -> Int? {
        if database.dialect == .postgresql, let predicate = predicateInMemory(of: fetch) {
            return try filteredRows(fetch, predicate).map { fetch.applyingOffsetAndLimit(to: $0.count) }
        }
        guard let query = try assetQuery(fetch, .byCondition) else { return nil }
        let all: Int
        if let name = fetch.counter {
            all = try CounterChanges.value(of: name, database)
        } else {
            let count = "SELECT count(*) FROM " + query.counted
            all = try database.first(count) { $0.int(0) } ?? 0
        }
        return fetch.applyingOffsetAndLimit(to: all)
    }

    /// Returns the number of assets of each media type after offset and limit; nil if the collection does not exist.
    func mediaCounts(_ fetch: Fetch) throws -> [MediaType: Int]? {
        if database.dialect == .postgresql, let predicate = predicateInMemory(of: fetch) {
            return try filteredMediaCounts(fetch, predicate)
        }
        guard let query = try assetQuery(fetch, .byCondition) else { return nil }
        let hasOffsetOrLimit = fetch.limit > 0 || fetch.offset > 0
        let inner =
            "SELECT a.media_type AS kind FROM " + query.source
            + (hasOffsetOrLimit ? query.order + Self.limit(fetch, PageRange()) : SQLFragment(""))
        let grouped = "SELECT kind, count(*) FROM (" + inner + ") found GROUP BY kind"
        var counts: [MediaType: Int] = [:]
        try database.each(grouped) { counts[try AssetRowMapping.named($0.int(0))] = $0.int(1) }
        return counts
    }

    /// Returns the SQL of a page. Tests inspect its query plan.
    func pageQuery(
        _ fetch: Fetch,
        _ range: PageRange,
        _ strategy: QueryStrategy = .byCondition
    ) throws -> SQLFragment? {
        guard let query = try assetQuery(fetch, strategy) else { return nil }
        return "SELECT a.row FROM " + query.source + query.order + Self.limit(fetch, range)
    }

    private struct Query {
        var tables: SQLFragment
        var conditions: SQLFragment
        var order: SQLFragment
        /// The tables that suffice for counting, if they are fewer.
        var fewerTables: SQLFragment?

        var source: SQLFragment { tables + " WHERE " + conditions }
        var counted: SQLFragment { (fewerTables ?? tables) + " WHERE " + conditions }
    }

    private func assetQuery(_ fetch: Fetch, _ strategy: QueryStrategy) throws -> Query? {
        guard case .assets(let source) = fetch.kind else { return nil }
        // Row numbers never change, and rows are found by them without the index of identifiers.
        let rows = try fetch.granted.map { granted in try granted.storeForm { try listedRows(granted) } }
        var tables = rows.map(listedTable) ?? SQLFragment("asset a")
        var fewerTables: SQLFragment?
        var conditions: [SQLFragment] = []
        var order = "a.added_date, a.id"
        var shownCondition: String?
        // Set if the keyword table is the outer table of the join; it has copies of the dates and of the flag
        // `visible`.
        var leading: KeywordSearch?
        var predicate = fetch.predicate?.root
        switch source {
        case .library:
            guard strategy == .byCondition, fetch.selectsVisible, let split = predicate?.splitKeywordSearch else {
                // A predicate that is the rule of a smart album, such as `isFavorite == TRUE`, is lowered to the
                // condition of that album (`PredicateLowering`), so that the album's indexes apply. For an order by
                // date SQLite chooses one itself. The count is the album's counter (`Fetch.counter`).
                if strategy == .byCondition, fetch.selectsVisible, !fetch.sortsByDate,
                    let album = predicate?.smartAlbum
                {
                    tables = SQLFragment("asset a " + DerivedSchema.hint(album, fetch))
                }
                break
            }
            (leading, predicate) = (split.search, split.rest)
            tables = SQLFragment("keyword k CROSS JOIN asset a ON a.row = k.asset")
            if split.rest == nil, fetch.mediaType == nil { fewerTables = SQLFragment("keyword k") }
            conditions = [
                "k.\(split.search.column) = " + .bound(split.search.word),
                SQLFragment("k.visible = 1 AND " + split.search.distinctCondition),
            ]
            order = "k.added_date, a.id"
        case .ids(let list):
            // An identifier that is not on the list of a limited grant is not looked up.
            let ids = fetch.granted.map { granted in list.ids.filter(granted.contains) } ?? list.ids
            tables = SQLFragment(
                "json_each(?) e CROSS JOIN asset a ON a.id = e.value",
                [SQLValue(jsonList(ids))]
            )
            order = "e.key"
        case .collection(let id):
            guard let row = try CollectionStore(database: database).rowNumber(of: id) else { return nil }
            tables = SQLFragment("membership m JOIN asset a ON a.row = m.asset")
            if fetch.selectsShown, fetch.mediaType == nil, predicate == nil {
                fewerTables = SQLFragment("membership m")
            }
            conditions.append(SQLFragment("m.collection = ?", [SQLValue(row)]))
            if let rows {
                conditions.append(SQLFragment("a.row IN (SELECT atom FROM json_each(?))", [SQLValue(rows)]))
                fewerTables = nil
            }
            order = "m.order_key"
            shownCondition = "m.shown = 1"
        case .smartAlbum(let album):
            // A visible asset always belongs to the user's own library, and a hidden asset is never visible.
            if album != .userLibrary || !fetch.selectsVisible {
                let condition =
                    strategy == .bySortOrder ? DerivedSchema.scanCondition(album) : DerivedSchema.condition(album)
                conditions.append(SQLFragment(condition))
                // With further conditions SQLite may prefer another index, and it then rejects the INDEXED BY clause.
                if strategy == .byCondition, fetch.selectsVisible, !fetch.sortsByDate, DerivedSchema.hasIndexes(album),
                    predicate == nil
                {
                    tables = SQLFragment("asset a " + DerivedSchema.hint(album, fetch))
                }
            }
            if album == .allHidden { conditions.append(SQLFragment("a.visible = 0")) }
        case .moment(let moment):
            // A limited view has the moments of its own assets, whether or not others are in them.
            guard try rows != nil || CollectionStore(database: database).rowNumber(of: moment.id) != nil else {
                return nil
            }
            conditions.append(SQLFragment("a.moment = ?", [SQLValue(moment.key)]))
            order = "a.creation_date, a.id"
        case .below(let list):
            if let scope = fetch.scope {
                conditions.append(Self.members(of: scope))
            } else if let rows, let moments = MomentList(list) {
                conditions.append(try momentCondition(moments, rows))
            } else {
                guard try CollectionStore(database: database).list(list) != nil else { return nil }
                conditions.append(Self.below(list))
            }
        case .transient: return nil
        case .burst(let burst): conditions.append("a.burst_identifier = " + .bound(burst))
        }
        if leading != nil {
            // The condition on `k.visible` covers it.
        } else if fetch.selectsVisible {
            conditions.append(SQLFragment("a.visible = 1"))
        } else if let shownCondition, fetch.selectsShown {
            conditions.append(SQLFragment(shownCondition))
        } else {
            conditions.append(SQLFragment("a.trashed_date IS \(fetch.inTrash ? "NOT " : "")NULL"))
            if !fetch.includeHidden { conditions.append(SQLFragment("a.is_hidden = 0")) }
            if !fetch.includeAllBurstAssets {
                conditions.append(
                    SQLFragment(
                        """
                        (a.burst_identifier IS NULL OR a.represents_burst = 1
                            OR (a.burst_selection_types & \(BurstSelectionTypes.userPick.rawValue)) <> 0)
                        """
                    )
                )
            }
            if fetch.sourceTypes != .all {
                conditions.append(SQLFragment("(a.source_type & ?) <> 0", [SQLValue(fetch.sourceTypes.rawValue)]))
            }
        }
        if let type = fetch.mediaType {
            if type == .video, strategy == .byCondition {
                // The text must be identical to that of the partial index that has the orders of videos.
                conditions.append(SQLFragment(DerivedSchema.condition(.videos)))
            } else {
                let column = strategy == .bySortOrder ? "+a.media_type" : "a.media_type"
                conditions.append(SQLFragment("\(column) = ?", [SQLValue(type.number)]))
            }
        }
        if let predicate {
            var lowering = PredicateLowering(table: .asset, isRowByRow: strategy == .bySortOrder || leading != nil)
            lowering.isBySortOrder = strategy == .bySortOrder
            lowering.isListed = rows != nil
            lowering.dialect = database.dialect
            conditions.append(
                lowering.lower(database.dialect == .postgresql ? predicate.candidates(.asset) : predicate)
            )
        }
        let dates = leading == nil ? nil : "k"
        return Query(
            tables: tables,
            conditions: .joined(conditions, " AND "),
            order: SQLFragment(
                " ORDER BY "
                    + (Self.order(fetch.sort, .asset, id: "a.id", dates: dates, dialect: database.dialect) ?? order)
            ),
            fewerTables: fewerTables
        )
    }

    // MARK: Parts

    private static func members(of collections: Set<ObjectID>) -> SQLFragment {
        SQLFragment(
            """
            a.row IN (
                SELECT m.asset FROM json_each(?) e JOIN collection c ON c.id = e.value
                    JOIN membership m ON m.collection = c.row)
            """,
            [SQLValue(jsonList(collections))]
        )
    }

    private static func below(_ list: ObjectID) -> SQLFragment {
        if let moments = MomentList(list) {
            return SQLFragment(
                "a.moment IN (SELECT moment FROM collection WHERE \(moments.column) = ?)",
                [SQLValue(moments.key)]
            )
        }
        return SQLFragment(
            """
            a.row IN (
                WITH RECURSIVE below (row) AS (
                    SELECT row FROM list WHERE id = ? UNION SELECT l.row FROM list l JOIN below b ON l.parent = b.row)
                SELECT m.asset FROM below b JOIN collection c ON c.parent = b.row
                    JOIN membership m ON m.collection = c.row)
            """,
            [SQLValue(list.text)]
        )
    }

    /// Returns the list of the `ORDER BY` clause of a sort; nil for the default order.
    ///
    /// - Parameter dates: the alias of a table with copies of capture and added dates, used instead of the asset's own
    static func order(
        _ sort: [SortDescriptor],
        _ table: PredicateTable,
        id: String,
        dates: String? = nil,
        dialect: SQLDialect
    ) -> String? {
        guard !sort.isEmpty else { return nil }
        let keys = sort.map { descriptor in
            var column = table.column(descriptor.key)
            if let dates, descriptor.key.isIndexedDate { column = dates + column.dropFirst() }
            return "\(column) \(descriptor.ascending ? "ASC" : "DESC")"
                + (descriptor.key.isOptional ? dialect.missingLast(ascending: descriptor.ascending) : "")
        }
        return (keys + [id]).joined(separator: ", ")
    }

    static func limit(_ fetch: Fetch, _ range: PageRange) -> SQLFragment {
        let (from, overflow) = fetch.offset.addingReportingOverflow(range.from)
        var count = range.count ?? Int.max
        if fetch.limit > 0 { count = min(count, max(0, fetch.limit - range.from)) }
        if overflow { count = 0 }
        return SQLFragment(
            " LIMIT ? OFFSET ?",
            [SQLValue(count), SQLValue(overflow ? Int.max : from)]
        )
    }
}

extension Fetch {
    /// True if the fetch, apart from its other conditions, selects the assets with the stored flag `visible`, whose
    /// indexes and counters are those of the whole library.
    var selectsVisible: Bool {
        granted == nil && !includeHidden && !includeAllBurstAssets && sourceTypes == .userLibrary && !inTrash
    }

    /// True if the fetch, apart from its other conditions, selects the memberships with the stored flag `shown`.
    var selectsShown: Bool {
        granted == nil && !includeHidden && !includeAllBurstAssets && sourceTypes == .all && !inTrash
    }

    /// The name of the counter of the assets before offset and limit; nil if there is none.
    var counter: String? {
        guard granted == nil, case .assets(let source) = kind else { return nil }
        switch (source, predicate?.root) {
        case (.library, nil) where selectsVisible: return mediaType.map { "visible.\($0.rawValue)" } ?? "visible"
        case (.library, let condition?) where selectsVisible && mediaType == nil:
            if case .comparison(.mediaType, .equal, .integer(let number)) = condition,
                let type = MediaType(number: Int(number))
            {
                return "visible.\(type.rawValue)"
            }
            return condition.smartAlbum.map(CounterChanges.name) ?? condition.keywordSearch?.counter
        case (.smartAlbum(.allHidden), nil)
        where includeHidden && !includeAllBurstAssets && sourceTypes == .userLibrary && !inTrash && mediaType == nil:
            return CounterChanges.name(.allHidden)
        // The counter of the hidden album counts hidden assets, which this fetch leaves out, so it cannot answer here.
        case (.smartAlbum(let album), nil) where selectsVisible && mediaType == nil && album != .allHidden:
            return CounterChanges.name(album)
        default: return nil
        }
    }
}

extension PredicateNode {
    /// The smart album whose rule is exactly this condition; it has an index and a counter. Nil if there is none.
    var smartAlbum: SmartAlbum? {
        switch self {
        case .comparison(.isFavorite, .equal, .integer(1)): .favorites
        case .comparison(.mediaType, .equal, .integer(Int64(MediaType.video.number))): .videos
        case .bits(.mediaSubtypes, let mask, let isEqual, let value)
        where (isEqual && value == mask) || (!isEqual && value == 0):
            SmartAlbum.allCases.first { $0.mediaSubtype?.rawValue == Int(mask) }
        default: nil
        }
    }
}

// MARK: - Pages

extension FetchStore {
    /// A part of a result, counted after the fetch's own offset and limit.
    struct PageRange {
        var from = 0
        /// The number of rows; nil reads to the end.
        var count: Int?
    }
}

extension Fetch {
    /// Returns a count after applying offset and limit.
    func applyingOffsetAndLimit(to all: Int) -> Int {
        let remaining = max(0, all - min(offset, all))
        return limit > 0 ? min(limit, remaining) : remaining
    }

    /// Returns the part of a whole result that offset and limit select.
    func applyingOffsetAndLimit(to rows: [Int64]) -> ArraySlice<Int64> {
        let rest = rows.dropFirst(offset)
        return limit > 0 ? rest.prefix(limit) : rest
    }

    /// Returns a page of a complete result to which offset and limit have not been applied yet.
    func page(_ objects: [PhotoCollection], _ range: FetchStore.PageRange) -> CollectionFetchStore.Page {
        let count = applyingOffsetAndLimit(to: objects.count)
        let from = min(range.from, count)
        let end = from + min(range.count ?? count, count - from)
        return CollectionFetchStore.Page(
            objects: (from..<end).map { objects[offset + $0] },
            count: count
        )
    }
}

extension [Int64] {
    /// Returns a page of a complete result to which offset and limit have not been applied yet.
    func page(_ fetch: Fetch, _ range: FetchStore.PageRange) -> [Int64] {
        let count = fetch.applyingOffsetAndLimit(to: count)
        let from = Swift.min(range.from, count)
        let end = from + Swift.min(range.count ?? count, count - from)
        return Array(dropFirst(fetch.offset).dropFirst(from).prefix(end - from))
    }
}

// MARK: - Strategy

/// A way to search the library for a page.
enum QueryStrategy {
    /// Uses the index of the condition; if the sort order differs, everything found is sorted.
    case byCondition
    /// Scans the index of the sort order and skips what does not match. If much of the library matches, a page is full
    /// long before everything found would have been sorted.
    case bySortOrder

    /// Chooses the cheaper strategy by the library's counters.
    init(_ fetch: Fetch, _ range: FetchStore.PageRange, _ database: SQLConnection) throws {
        self = .byCondition
        guard database.dialect == .sqlite, fetch.selectsVisible, let count = range.count, let name = fetch.counter,
            !fetch.isOfVideosByDuration,
            !fetch.sortsByDate || (fetch.isOfOneMedium && fetch.sort.first?.key != .creationDate)
        else { return }
        let (end, overflows) = (fetch.offset + min(range.from, .max / 2)).addingReportingOverflow(count)
        guard !overflows else { return }
        let found = Double(try CounterChanges.value(of: name, database))
        let all = Double(try CounterChanges.value(of: "visible", database))
        // A page is full after about `end * all / found` rows of the order.
        if found * found > Double(end) * all { self = .bySortOrder }
    }
}

extension Fetch {
    /// True for the orders that the indexes of smart albums and keywords have: by capture date, and by added date,
    /// which is the default.
    var sortsByDate: Bool { sort.first?.key.isIndexedDate ?? true }

    /// True for a fetch of videos by duration. Only videos have a duration, so the distribution over the whole library
    /// says nothing about their positions in its order.
    var isOfVideosByDuration: Bool {
        guard sort.first?.key == .duration, case .assets(let source) = kind else { return false }
        if source == .library, predicate == nil { return mediaType == .video }
        return source == .smartAlbum(.videos) || source == .library && predicate?.root.smartAlbum == .videos
    }

    /// The value that every asset of the result has for a key, if the fetch determines one.
    func pinnedValue(of key: PredicateKey) -> Int64? {
        if key == .mediaType, let mediaType { return Int64(mediaType.number) }
        switch (key, kind) {
        case (.isFavorite, .assets(.smartAlbum(.favorites))): return 1
        case (.mediaType, .assets(.smartAlbum(.videos))): return Int64(MediaType.video.number)
        default: break
        }
        guard case .comparison(key, .equal, .integer(let number)) = predicate?.root else { return nil }
        return number
    }

    /// True if the media type is the only condition; its index has the order by capture date only.
    var isOfOneMedium: Bool {
        if mediaType != nil { return predicate == nil }
        if case .comparison(.mediaType, .equal, _) = predicate?.root { return true }
        return false
    }
}

extension PredicateKey {
    /// True for the dates by which the indexes of smart albums and keywords are ordered.
    var isIndexedDate: Bool { self == .creationDate || self == .addedDate }
}
