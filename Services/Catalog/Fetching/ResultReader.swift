import Contracts
import PhotoModel

/// Reads the results of fetches of assets at any sequence, as row numbers in their order, and the assets of these rows.
///
/// Whole results are cached within a bounded number of bytes. One that is not cached is made by running the query and
/// undoing records, or by carrying a cached result of an earlier sequence forward, which costs as much as changed
/// between the two.
struct ResultReader {
    let reader: LibraryReader
    let head: LibraryHead
    let cache: ResultCache
    /// True if the request names the sequence number of an earlier one, whose result it continues. Only then may a
    /// result that depends on local files come from the cache.
    var isContinued = false

    /// The bytes of records over which a cached result is carried forward; above it the query is run again.
    static let maxCarried = 4 << 20

    /// - Parameter fetch: without offset and limit
    func rows(of fetch: Fetch, at sequence: Int64) throws -> [Int64] {
        let key = ResultCache.Key(fetch: fetch, sequence: sequence)
        if isContinued || !fetch.dependsOnLocalFiles, let kept = cache[key] { return kept }
        let rows = try made(fetch, at: sequence)
        cache.insert(rows, for: key)
        return rows
    }

    /// Returns the rows that offset and limit of a fetch select.
    func selectedRows(of fetch: Fetch, at sequence: Int64) throws -> ArraySlice<Int64> {
        fetch.applyingOffsetAndLimit(to: try rows(of: fetch.whole, at: sequence))
    }

    private func made(_ fetch: Fetch, at sequence: Int64) throws -> [Int64] {
        guard sequence == head.sequence else {
            guard fetch.kind.isFollowable, !fetch.dependsOnLocalFiles else {
                throw CatalogError.tokenExpired(ChangeToken(library: head.library, sequence: sequence), head)
            }
            let past = HistoricalState(reader: reader, sequence: sequence, head: head)
            guard try past.hasObject(of: fetch) else { throw CatalogError.notFound(fetch) }
            return try past.result(of: fetch)
        }
        if fetch.kind.isDecidedByEntity, !fetch.dependsOnLocalFiles, let carried = try carried(fetch) { return carried }
        guard let rows = try reader.fetches.assetRows(fetch, .init()) else {
            throw CatalogError.notFound(fetch)
        }
        return rows
    }

    private func carried(_ fetch: Fetch) throws -> [Int64]? {
        guard let (sequence, array) = cache.newest(of: fetch, from: head.oldest, through: head.sequence) else {
            return nil
        }
        guard try HistoricalState(reader: reader, sequence: head.sequence, head: head).hasObject(of: fetch) else {
            throw CatalogError.notFound(fetch)
        }
        guard try reader.history.size(after: sequence, through: head.sequence, upTo: Self.maxCarried) != nil else {
            return nil
        }
        var touched: [ObjectID: Asset?] = [:]
        try reader.history.each(after: sequence, through: head, bytes: .max) { record in
            for change in record.assets { touched[change.id] = .some(change.after) }
        }
        return try ResultMerge(reader: reader, fetch: fetch).merged(array, with: touched)
    }

    /// Returns the positions of assets in a result; nil for assets that are not in it.
    ///
    /// - Parameter granted: the list of a limited grant; an asset that is not on it is not looked up, so that it costs
    ///   the same whether it exists or not
    func positions(
        of ids: [ObjectID],
        in rows: ArraySlice<Int64>,
        granted: GrantedAssets? = nil
    ) throws -> [Int?] {
        var wanted: [Int64: Int] = [:]
        let numbers = try ids.map { id -> Int64? in
            guard granted?.contains(id) ?? true else { return nil }
            return try reader.assets.rowNumber(of: id) ?? reader.assets.departedRowNumber(of: id)
        }
        let set = Set(numbers.compactMap { $0 })
        for (position, row) in zip(rows.indices, rows) where set.contains(row) {
            wanted[row] = position
            if wanted.count == set.count { break }
        }
        return numbers.map { $0.flatMap { wanted[$0] } }
    }

    /// Returns the assets of some rows as they were at a sequence, in the order of the rows.
    func assets(_ rows: [Int64], at sequence: Int64) throws -> [Asset] {
        var assets: [Asset] = []
        assets.reserveCapacity(rows.count)
        try each(rows, at: sequence) { assets.append($0) }
        return assets
    }

    /// The number of assets of an earlier sequence that are read at a time: each may have a megabyte.
    private static let batch = 50

    /// Calls a closure with the assets of some rows as they were at a sequence, in the order of the rows.
    ///
    /// - Parameter projection: the members that are wanted; others may be missing
    func each(
        _ rows: some Collection<Int64>,
        at sequence: Int64,
        projection: AssetProjection = .full,
        _ visit: (Asset) throws -> Void
    ) throws {
        guard sequence < head.sequence else {
            return try reader.assetReader(projection).each(rows) { try visit($1) }
        }
        let rows = Array(rows)
        let past = HistoricalState(reader: reader, sequence: sequence, head: head)
        for start in stride(from: 0, to: rows.count, by: Self.batch) {
            let part = Array(rows[start..<min(start + Self.batch, rows.count)])
            let present = try reader.assets.assets(part)
            for row in part {
                guard let id = try present[row]?.id ?? reader.assets.departed(row),
                    let asset = try past.earlier(id) ?? present[row]
                else { throw DamagedRow("row \(row) is in no record") }
                try visit(asset)
            }
        }
    }
}
