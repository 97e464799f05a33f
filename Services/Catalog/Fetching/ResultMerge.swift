import PhotoModel

/// Carries a result from one sequence to another: removes the objects touched between the two, and inserts them at
/// their positions at the other sequence.
struct ResultMerge {
    let reader: LibraryReader
    let fetch: Fetch
    /// The maximum number of objects whose positions are searched one by one. More objects are merged with the whole
    /// result by the keys of its rows, which are read once.
    var maxSearched = 1000

    /// - Parameters:
    ///   - array: the rows of a result
    ///   - touched: the objects that differ, as they are at the other sequence; nil for those that do not exist at it
    func merged(_ array: [Int64], with touched: [ObjectID: Asset?]) throws -> [Int64] {
        guard !touched.isEmpty else { return array }
        var rows: [ObjectID: Int64] = [:]
        for id in touched.keys {
            rows[id] = try reader.assets.rowNumber(of: id) ?? reader.assets.departedRowNumber(of: id)
        }
        let moved = Set(rows.values)
        var array = array
        array.removeAll(where: moved.contains)
        let inserted = try touched.values.compactMap { $0 }
            .filter { asset in
                // The predicate may take long with long texts.
                try reader.checkCancellation()
                return fetch.includes(asset)
            }
            .sorted { fetch.areInIncreasingOrder($0, $1) }
            .map { asset in
                guard let row = rows[asset.id] else { throw DamagedRow("\(asset.id) has no row") }
                return (row: row, asset: asset)
            }
        // The remaining rows were not touched: their relative order is the same at both sequences.
        if inserted.count > maxSearched, case .assets(let source) = fetch.kind {
            return try mergedByKeys(array, inserted, source)
        }
        var result: [Int64] = []
        result.reserveCapacity(array.count + inserted.count)
        var loaded: [Int64: Asset] = [:]
        var position = 0
        for (row, asset) in inserted {
            var (low, high) = (position, array.count)
            while low < high {
                let middle = (low + high) / 2
                let other = try currentAsset(array[middle], &loaded)
                if fetch.areInIncreasingOrder(other, asset) { low = middle + 1 } else { high = middle }
            }
            result += array[position..<low]
            result.append(row)
            position = low
        }
        result += array[position...]
        return result
    }

    private func mergedByKeys(
        _ array: [Int64],
        _ inserted: [(row: Int64, asset: Asset)],
        _ source: FetchKind.AssetSource
    ) throws -> [Int64] {
        var result: [Int64] = []
        result.reserveCapacity(array.count + inserted.count)
        var next = inserted.map { (row: $0.row, key: fetch.resultKey(of: $0.asset)) }[...]
        try reader.fetchKeys.each(array, of: fetch, source) { row, key in
            while let first = next.first, first.key < key {
                result.append(first.row)
                next.removeFirst()
            }
            result.append(row)
        }
        result += next.map { $0.row }
        return result
    }

    private func currentAsset(_ row: Int64, _ loaded: inout [Int64: Asset]) throws -> Asset {
        if let asset = loaded[row] { return asset }
        guard let asset = try reader.assets.assets([row])[row] else { throw DamagedRow("row \(row) does not exist") }
        loaded[row] = asset
        return asset
    }
}
