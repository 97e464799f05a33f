import PhotoModel

/// Reads pages of the library ordered by one key, by concatenating runs that an index already has in order.
///
/// Ties are broken by ascending identifier in both directions, so an index cannot simply be read backward, and with a
/// key of few values SQLite would sort most of the library. Such a key is read value by value.
struct LibraryOrderStore {
    let database: SQLConnection

    /// Returns the rows of a page.
    ///
    /// - Parameter conditions: the condition on table `a`, written so that it does not make SQLite choose another index
    /// - Returns: nil if the sort order is not of this kind
    func rows(_ fetch: Fetch, _ range: FetchStore.PageRange, _ conditions: SQLFragment) throws -> [Int64]? {
        guard fetch.sort.count == 1, let sort = fetch.sort.first, var runs = Runs(sort, fetch, database) else {
            return nil
        }
        let (from, overflows) = fetch.offset.addingReportingOverflow(range.from)
        var count = range.count ?? .max
        if fetch.limit > 0 { count = min(count, max(0, fetch.limit - range.from)) }
        guard !overflows, count > 0 else { return [] }
        let end = from.addingReportingOverflow(count).overflow ? .max : from + count
        var rows: [Int64] = []
        while rows.count < end, let run = try runs.next() {
            let query =
                "SELECT a.row FROM asset a \(run.hint) WHERE " + conditions + " AND " + run.condition
                + SQLFragment(" ORDER BY \(run.order) LIMIT ?", [SQLValue(end - rows.count)])
            rows += try database.all(query) { $0[0] }
        }
        return Array(rows.dropFirst(from))
    }

    private struct Run {
        var condition: SQLFragment
        var order = "a.id"
        var hint = ""
    }

    /// The runs that make up the library, in order.
    private struct Runs {
        private let database: SQLConnection
        private let ascending: Bool
        private let column: String
        /// The index that is read value by value; nil if all runs are known.
        private var index: String?
        private var value: SQLValue?
        /// The runs that are known from the start, last to first.
        private var knownRuns: [Run] = []

        init?(_ sort: SortDescriptor, _ fetch: Fetch, _ database: SQLConnection) {
            self.database = database
            ascending = sort.ascending
            column = PredicateTable.asset.column(sort.key)
            let isOfFavorites = fetch.pinnedValue(of: .isFavorite) == 1
            let byID = isOfFavorites ? Self.favoritesByID : Self.byID
            switch sort.key {
            case .mediaType: index = "asset_media_type"
            case .mediaSubtypes: index = "asset_media_subtypes"
            case .isFavorite: index = "asset_is_favorite"
            case .pixelWidth: index = "asset_pixel_width"
            case .pixelHeight: index = "asset_pixel_height"
            // A visible asset is never hidden, so all values are equal and the index of identifiers has the order.
            case .isHidden: knownRuns = [Run(condition: byID.condition + " AND +a.is_hidden = 0", hint: byID.hint)]
            case .burstIdentifier:
                knownRuns = [
                    Run(condition: byID.condition + " AND +a.burst_identifier IS NULL", hint: byID.hint),
                    Run(
                        condition: SQLFragment(
                            "a.burst_identifier IS NOT NULL" + (isOfFavorites ? " AND +a.is_favorite = 1" : "")
                        ),
                        order: "a.burst_identifier \(ascending ? "ASC" : "DESC"), a.id",
                        hint: "INDEXED BY asset_visible_burst"
                    ),
                ]
            case .duration where !ascending:
                knownRuns = [
                    Run(condition: SQLFragment("a.duration = 0"), hint: "INDEXED BY asset_duration"),
                    Run(
                        condition: SQLFragment("a.duration > 0"),
                        order: "a.duration DESC, a.id",
                        hint: "INDEXED BY asset_duration"
                    ),
                ]
            default: return nil
            }
            if let index, let pinned = fetch.pinnedValue(of: sort.key) {
                knownRuns = [
                    Run(
                        condition: SQLFragment("\(column) = ?", [SQLValue(pinned)]),
                        hint: "INDEXED BY \(index)"
                    )
                ]
                self.index = nil
            }
        }

        private static let byID = Run(condition: SQLFragment("1"), hint: "INDEXED BY sqlite_autoindex_asset_1")
        private static let favoritesByID = Run(
            condition: SQLFragment("a.is_favorite = 1"),
            hint: "INDEXED BY asset_is_favorite"
        )

        mutating func next() throws -> Run? {
            guard let index else { return knownRuns.popLast() }
            let further =
                value.map { SQLFragment(" AND \(column) \(ascending ? ">" : "<") ?", [$0]) } ?? SQLFragment("")
            let query =
                "SELECT \(column) FROM asset a INDEXED BY \(index) WHERE a.visible = 1" + further
                + " ORDER BY \(column) \(ascending ? "ASC" : "DESC") LIMIT 1"
            value = try database.first(query) { $0[0] }
            return value.map { Run(condition: SQLFragment("\(column) = ?", [$0]), hint: "INDEXED BY \(index)") }
        }
    }
}
