import PhotoModel

/// Carries a result from one sequence to another: removes the objects touched between the two, and inserts them at
/// their positions at the other sequence.
struct ResultMerge {
    let reader: LibraryReader
    let fetch: Fetch

    /// - Parameters:
    ///   - array: the rows of a result
    ///   - touched: the objects that differ, as they are at the other sequence; nil for those that do not exist there
    func merged(_ array: [Int64], with touched: [ObjectID: Asset?]) throws -> [Int64] {
        guard !touched.isEmpty else { return array }
        var rows: [ObjectID: Int64] = [:]
        for id in touched.keys {
            rows[id] = try reader.assets.rowNumber(of: id) ?? reader.assets.departedRowNumber(of: id)
        }
        let moved = Set(rows.values)
        var array = array
        array.removeAll(where: moved.contains)
        // The remaining rows were not touched: their relative order is the same at both sequences.
        var loaded: [Int64: Asset] = [:]
        let coming = touched.values.compactMap { $0 }.filter { fetch.includes($0) }
            .sorted { fetch.areInIncreasingOrder($0, $1) }
        for (inserted, asset) in coming.enumerated() {
            var (low, high) = (0, array.count)
            while low < high {
                let middle = (low + high) / 2
                let other = try currentEntities(array[middle], &loaded)
                if fetch.areInIncreasingOrder(other, asset) { low = middle + 1 } else { high = middle }
            }
            guard let row = rows[asset.id] else { throw DamagedRow("\(asset.id) has no row") }
            array.insert(row, at: low)
            loaded[row] = asset
            if inserted % 1000 == 999 { try reader.checkCancellation() }
        }
        return array
    }

    private func currentEntities(_ row: Int64, _ loaded: inout [Int64: Asset]) throws -> Asset {
        if let asset = loaded[row] { return asset }
        guard let asset = try reader.assets.assets([row])[row] else { throw DamagedRow("row \(row) is gone") }
        loaded[row] = asset
        return asset
    }
}
