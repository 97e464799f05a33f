import Contracts
import PhotoModel

/// Reads the results of fetches of assets at any sequence, as row numbers in their order, and the assets of these rows.
///
/// Whole results are cached within a bounded number of bytes. A result that is not cached is computed by running the
/// query and undoing records, or by carrying a cached result of an earlier sequence forward, which costs as much as the
/// changes between the two sequences.
struct ResultReader {
    let reader: LibraryReader
    let head: LibraryHead
    let cache: ResultCache
    /// True if the request names a token, and so continues the result of an earlier request. Only then may a result
    /// that depends on local files come from the cache.
    var isContinued = false

    /// The maximum bytes of records over which a cached result is carried forward; beyond it the query is run again.
    static let maxCarriedBytes = 4 << 20

    /// Returns the row numbers of a result, from the cache if it has them.
    ///
    /// - Parameter fetch: without offset and limit
    func rows(of fetch: Fetch, at sequence: Int64) throws -> [Int64] {
        let key = ResultCache.Key(fetch: fetch, sequence: sequence)
        if isContinued || !fetch.dependsOnLocalFiles, let cached = cache[key] { return cached }
        let rows = try computeRows(of: fetch, at: sequence)
        cache.insert(rows, for: key)
        return rows
    }

    /// Returns the row numbers that offset and limit of a fetch select.
    func selectedRows(of fetch: Fetch, at sequence: Int64) throws -> ArraySlice<Int64> {
        fetch.applyingOffsetAndLimit(to: try rows(of: fetch.whole, at: sequence))
    }

    private func computeRows(of fetch: Fetch, at sequence: Int64) throws -> [Int64] {
        guard sequence == head.sequence else {
            guard fetch.kind.isFollowable, !fetch.dependsOnLocalFiles else {
                throw CatalogError.tokenExpired(ChangeToken(library: head.library, sequence: sequence), head)
            }
            let state = HistoricalState(reader: reader, sequence: sequence, head: head)
            guard try state.hasObject(of: fetch) else { throw CatalogError.notFound(fetch) }
            return try state.result(of: fetch)
        }
        if fetch.kind.isDecidedByEntity, !fetch.dependsOnLocalFiles, let rows = try carryForward(fetch) { return rows }
        guard let rows = try reader.fetches.assetRows(fetch, .init()) else {
            throw CatalogError.notFound(fetch)
        }
        return rows
    }

    /// Updates a cached result of an earlier sequence with the records since; nil if there is none, or the records have
    /// too many bytes.
    private func carryForward(_ fetch: Fetch) throws -> [Int64]? {
        guard let (sequence, array) = cache.newest(of: fetch, from: head.oldest, through: head.sequence) else {
            return nil
        }
        guard try HistoricalState(reader: reader, sequence: head.sequence, head: head).hasObject(of: fetch) else {
            throw CatalogError.notFound(fetch)
        }
        let size = try reader.history.size(after: sequence, through: head.sequence, upTo: Self.maxCarriedBytes)
        guard size != nil else { return nil }
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
        var positions: [Int64: Int] = [:]
        let numbers = try ids.map { id -> Int64? in
            guard granted?.contains(id) ?? true else { return nil }
            return try reader.assets.rowNumber(of: id) ?? reader.assets.departedRowNumber(of: id)
        }
        let set = Set(numbers.compactMap { $0 })
        for (position, row) in zip(rows.indices, rows) where set.contains(row) {
            positions[row] = position
            if positions.count == set.count { break }
        }
        return numbers.map { $0.flatMap { positions[$0] } }
    }

    /// Returns the assets of some rows as they were at a sequence, in the order of the rows.
    func assets(_ rows: [Int64], at sequence: Int64) throws -> [Asset] {
        var assets: [Asset] = []
        assets.reserveCapacity(rows.count)
        try each(rows, at: sequence) { assets.append($0) }
        return assets
    }

    /// The number of assets of an earlier sequence that are read together: each may have a megabyte.
    private static let batch = 50

    /// Calls a closure with the assets of some rows as they were at a sequence, in the order of the rows.
    ///
    /// - Parameter projection: the members to read; others may be missing
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
        let state = HistoricalState(reader: reader, sequence: sequence, head: head)
        for start in stride(from: 0, to: rows.count, by: Self.batch) {
            let part = Array(rows[start..<min(start + Self.batch, rows.count)])
            let current = try reader.assets.assets(part)
            for row in part {
                guard let id = try current[row]?.id ?? reader.assets.departed(row),
                    let asset = try state.earlier(id) ?? current[row]
                else { throw DamagedRow("row \(row) is in no record") }
                try visit(asset)
            }
        }
    }
}
