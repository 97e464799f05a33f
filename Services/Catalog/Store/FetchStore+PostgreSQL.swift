import PhotoModel

/// Predicates that PostgreSQL cannot evaluate completely: it finds candidates, for which the predicates are evaluated
/// in memory. For SQLite the catalog defines the functions that these predicates need.
extension FetchStore {
    /// Returns the predicate of a fetch if it is evaluated in memory with PostgreSQL; nil if the database evaluates it.
    func predicateInMemory(of fetch: Fetch) -> Predicate? {
        guard case .assets = fetch.kind, let predicate = fetch.predicate, predicate.root.needsFunctions(.asset) else {
            return nil
        }
        return predicate
    }

    /// The number of candidates that are read together.
    private static let batch = 1000

    /// Calls a closure with each asset of the result, without its offset and limit.
    ///
    /// - Returns: false if the collection that the fetch refers to does not exist
    private func forEachFiltered(
        _ fetch: Fetch,
        _ predicate: Predicate,
        _ visit: (Int64, Asset) -> Void
    ) throws -> Bool {
        guard let query = try pageQuery(fetch.whole, .init()) else { return false }
        let candidates = try database.all(query) { $0.int64(0) }
        let reader = AssetReader(database: database)
        let dependsOnLocalFiles = fetch.dependsOnLocalFiles
        for start in stride(from: 0, to: candidates.count, by: Self.batch) {
            try reader.each(candidates[start..<min(start + Self.batch, candidates.count)]) { row, asset in
                // The predicate may take long with long texts.
                try database.checkCancellation()
                var asset = asset
                if dependsOnLocalFiles {
                    for index in asset.resources.indices where !database.isLocal(asset.resources[index].digest) {
                        asset.resources[index].isLocallyAvailable = false
                    }
                }
                if predicate.evaluate(asset) { visit(row, asset) }
            }
        }
        return true
    }

    func filteredRows(_ fetch: Fetch, _ predicate: Predicate) throws -> [Int64]? {
        var rows: [Int64] = []
        return try forEachFiltered(fetch, predicate) { row, _ in rows.append(row) } ? rows : nil
    }

    func filteredMediaCounts(_ fetch: Fetch, _ predicate: Predicate) throws -> [MediaType: Int]? {
        var types: [MediaType] = []
        guard try forEachFiltered(fetch, predicate, { types.append($1.mediaType) }) else { return nil }
        return types.dropFirst(fetch.offset).prefix(fetch.limit > 0 ? fetch.limit : .max)
            .reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
}
