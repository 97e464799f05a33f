import PhotoModel

/// Adds smart albums and moments to a library of an earlier version, or recomputes the members of smart albums whose
/// rules have changed since.
///
/// No change record contains these changes, so the library begins a new history afterwards and its clients fetch again.
struct DerivedBackfillStore {
    let database: SQLConnection

    /// Returns true if the library was written by a version without derived collections, with fewer smart albums or
    /// with other rules.
    func isNeeded() throws -> Bool { try !missingAlbums().isEmpty || hasOtherRules() }

    private func hasOtherRules() throws -> Bool {
        try CounterChanges.value(of: Self.rulesCounter, database) != SmartAlbum.rulesVersion
    }

    /// The counter in which the version of the rules is stored.
    private static let rulesCounter = "smart.rules"

    /// Records that the members of smart albums follow the rules of this version.
    func recordRules() throws {
        try CounterChanges.set(Int64(SmartAlbum.rulesVersion), as: Self.rulesCounter, database)
    }

    private func missingAlbums() throws -> [SmartAlbum] {
        let store = CollectionStore(database: database)
        return try SmartAlbum.every.filter { try store.rowNumber(of: $0.id) == nil }
    }

    /// Computes the derived columns, collections and counters of all assets.
    ///
    /// - Parameters:
    ///   - date: the creation date of the collections, in microseconds since 1970
    ///   - sequence: the revision of the collections
    func run(date: Int64, sequence: Int64) throws {
        let store = CollectionStore(database: database)
        let missing = try missingAlbums()
        try store.createMissingSmartAlbums(date: date)
        try recordRules()
        guard missing.contains(.favorites) else { return try updateSmartAlbums() }
        var moments: [Moment: (count: Int, first: Int64, last: Int64)] = [:]
        var counts: [String: Int] = [:]
        var last: Int64 = 0
        while true {
            let rows = try database.all("SELECT row FROM asset WHERE row > ? ORDER BY row LIMIT 1000", last) {
                $0.int64(0)
            }
            guard let end = rows.last else { break }
            last = end
            for (row, asset) in try AssetStore(database: database).assets(rows) {
                try database.run(
                    "UPDATE asset SET smart = ?, smart_favorites = ?, moment = ? WHERE row = ?",
                    DerivedSchema.smart(asset),
                    DerivedSchema.favorites(asset),
                    asset.moment?.key,
                    row
                )
                for name in CounterChanges.derivedNames(of: asset) { counts[name, default: 0] += 1 }
                guard let moment = asset.moment, let date = asset.creationDate else { continue }
                let old = moments[moment]
                moments[moment] = ((old?.count ?? 0) + 1, min(old?.first ?? date, date), max(old?.last ?? date, date))
            }
        }
        for (name, count) in counts { try CounterChanges.add(count, to: name, database) }
        try save(moments, date: date, sequence: sequence)
    }

    /// Computes the members and counters of all smart albums.
    private func updateSmartAlbums() throws {
        var counts = Dictionary(uniqueKeysWithValues: SmartAlbum.every.map { (CounterChanges.name($0), 0) })
        var last: Int64 = 0
        while true {
            let rows = try database.all("SELECT row FROM asset WHERE row > ? ORDER BY row LIMIT 1000", last) {
                $0.int64(0)
            }
            guard let end = rows.last else { break }
            last = end
            for (row, asset) in try AssetStore(database: database).assets(rows) {
                let mask = DerivedSchema.smart(asset)
                try database.run("UPDATE asset SET smart = ? WHERE row = ? AND smart <> ?", mask, row, mask)
                for name in CounterChanges.derivedNames(of: asset) { counts[name, default: 0] += 1 }
            }
        }
        for (name, count) in counts { try CounterChanges.set(Int64(count), as: name, database) }
    }

    private func save(
        _ moments: [Moment: (count: Int, first: Int64, last: Int64)],
        date: Int64,
        sequence: Int64
    ) throws {
        var lists: [MomentList: CollectionList] = [:]
        var collections: [EntityChange<AssetCollection>] = []
        for (moment, facts) in moments.sorted(by: { $0.key < $1.key }) {
            var collection = AssetCollection(moment, revision: Revision(sequence))
            (collection.creationDate, collection.modificationDate) = (date, date)
            collection.estimatedAssetCount = facts.count
            (collection.startDate, collection.endDate) = (facts.first, facts.last)
            collections.append(EntityChange(before: nil, after: collection))
            for list in moment.lists {
                var entity = lists[list] ?? CollectionList(list, revision: Revision(sequence))
                (entity.creationDate, entity.modificationDate) = (date, date)
                entity.childCount += 1
                entity.startDate = min(entity.startDate ?? facts.first, facts.first)
                entity.endDate = max(entity.endDate ?? facts.last, facts.last)
                lists[list] = entity
            }
        }
        let store = CollectionStore(database: database)
        try store.save(lists.values.sorted { $0.id < $1.id }.map { EntityChange(before: nil, after: $0) })
        try store.save(collections)
    }
}
