import Basics
import PhotoModel
import Storage

/// Reads and writes assets in the database, within one transaction.
struct AssetStore {
    let database: SQLConnection

    // MARK: Reading

    /// Returns a whole asset by identifier; nil if there is none.
    func asset(_ id: ObjectID) throws -> Asset? { try stored(id)?.asset }

    func rowNumber(of id: ObjectID) throws -> Int64? {
        try database.first("SELECT row FROM asset WHERE id = ?", id.text) { $0.int64(0) }
    }

    /// Returns whole assets by row number; row numbers that do not exist are left out.
    func assets(_ rows: [Int64]) throws -> [Int64: Asset] {
        var assets: [Int64: Asset] = [:]
        assets.reserveCapacity(rows.count)
        try AssetReader(database: database).each(rows) { row, asset in assets[row] = asset }
        return assets
    }

    /// Returns the identifiers of rows in the given order, also of deleted assets while the kept history mentions them.
    ///
    /// - Throws: ``DamagedRow`` if a row has no identifier
    func identifiers(_ rows: [Int64]) throws -> [ObjectID] {
        let ids = try identifiersByRow(Set(rows))
        return try rows.map { row in
            guard let id = ids[row] else { throw DamagedRow("row \(row) has no identifier") }
            return id
        }
    }

    /// Returns the identifiers of rows in the given order as JSON text, `{"id":"…"},{"id":"…"}`. No value is created
    /// for each identifier, because a page may have a hundred thousand.
    ///
    /// - Throws: ``DamagedRow`` if a row has no identifier
    func encodedIdentifiers(_ rows: ArraySlice<Int64>) throws -> Bytes {
        var text = Bytes()
        text.reserveCapacity(rows.count * (ObjectID.length + 10))
        try database.each(
            """
            SELECT coalesce(a.id, (SELECT d.id FROM departed d WHERE d.row = e.atom))
            FROM json_each(?) e LEFT JOIN asset a ON a.row = e.atom ORDER BY e.key
            """,
            jsonList(rows)
        ) { row in
            guard !row.isNull(0) else { throw DamagedRow("a row has no identifier") }
            text += text.isEmpty ? Self.first : Self.next
            text += row.text(0).utf8
            text += Self.end
        }
        return text
    }

    private static let (first, next, end) = (Bytes("{\"id\":\"".utf8), Bytes(",{\"id\":\"".utf8), Bytes("\"}".utf8))

    func identifiersByRow(_ rows: Set<Int64>) throws -> [Int64: ObjectID] {
        var ids: [Int64: ObjectID] = [:]
        ids.reserveCapacity(rows.count)
        let list = jsonList(rows)
        for table in ["asset", "departed"] {
            let sql = "SELECT row, id FROM \(table) WHERE row IN (SELECT atom FROM json_each(?))"
            try database.each(sql, list) { ids[$0.int64(0)] = try AssetRowMapping.identifier($0.text(1)) }
        }
        return ids
    }

    /// Returns the row number that a deleted asset had, while the kept history mentions the asset.
    func departedRowNumber(of id: ObjectID) throws -> Int64? {
        try database.first("SELECT row FROM departed WHERE id = ?", id.text) { $0.int64(0) }
    }

    /// Returns the deleted asset that had a row number, while the kept history mentions the asset.
    func departed(_ row: Int64) throws -> ObjectID? {
        try database.first("SELECT id FROM departed WHERE row = ?", row) { $0.text(0) }.map(AssetRowMapping.identifier)
    }

    /// Returns the asset whose original has these bytes; if there are several, the one imported first of those that are
    /// not in the trash.
    func asset(withOriginal digest: String) throws -> ObjectID? {
        try assets(withOriginal: digest, limit: 1).first
    }

    /// Returns the assets whose original has these bytes: first those that are not in the trash, then the others, each
    /// in the order of import. The photo of a pair is an original even while the RAW file of the pair is presented.
    func assets(withOriginal digest: String, limit: Int) throws -> [ObjectID] {
        guard let bytes = [UInt8](hexadecimal: digest) else { return [] }
        return try database.all(
            """
            SELECT a.id FROM resource r JOIN asset a ON a.row = r.asset
            WHERE r.digest = ?
                AND (r.type IN (1, 2, 3) OR r.type = 4 AND r.content_type NOT LIKE '%raw-image')
            ORDER BY a.trashed_date IS NOT NULL, r.asset LIMIT ?
            """,
            bytes,
            limit
        ) { $0.text(0) }.map(AssetRowMapping.identifier)
    }

    /// Returns the assets whose primary original has these bytes, except those in the trash, oldest import first.
    ///
    /// The primary original of a pair is the compressed one, whichever of the two is presented. If the bytes are those
    /// of no primary original, the pairs that have them in their other original are returned: a RAW file identified its
    /// asset before it became one of a pair and, in earlier versions, while it was presented.
    func assets(withPrimaryOriginal digest: String, limit: Int) throws -> [ObjectID] {
        guard let bytes = [UInt8](hexadecimal: digest) else { return [] }
        let found = try database.all(
            """
            SELECT a.id, \(Self.isPrimary) AS is_primary FROM resource r JOIN asset a ON a.row = r.asset
            WHERE r.digest = ? AND r.type IN (1, 2, 3, 4) AND a.trashed_date IS NULL
            ORDER BY is_primary DESC, r.asset LIMIT ?
            """,
            bytes,
            limit
        ) { (id: try AssetRowMapping.identifier($0.text(0)), isPrimary: $0.flag(1)) }
        return found.prefix { $0.isPrimary == found[0].isPrimary }.map(\.id)
    }

    /// Returns the assets whose primary original has some bytes, by digest, among those on the list of a limited grant.
    ///
    /// It reads the whole list, because the duration of a look-up by digest would reveal other assets with the bytes.
    func assets(
        withPrimaryOriginals digests: [String],
        listedFor identity: String,
        limit: Int
    ) throws -> [String: [ObjectID]] {
        let byBytes = Dictionary(digests.map { ([UInt8](hexadecimal: $0) ?? [], $0) }) { first, _ in first }
        var (primary, others): ([String: [ObjectID]], [String: [ObjectID]]) = ([:], [:])
        func add(_ row: SQLRow, to found: inout [String: [ObjectID]]) throws {
            guard let digest = byBytes[row.bytes(0)], found[digest, default: []].count < limit else { return }
            found[digest, default: []].append(try AssetRowMapping.identifier(row.text(1)))
        }
        try database.each(
            """
            SELECT r.digest, a.id, \(Self.isPrimary) FROM grant_asset g CROSS JOIN asset a ON a.id = g.asset
            CROSS JOIN resource r ON r.asset = a.row AND r.type IN (1, 2, 3, 4)
            WHERE g.identity = ? AND a.trashed_date IS NULL ORDER BY a.row
            """,
            identity
        ) { row in
            if row.flag(2) { try add(row, to: &primary) } else { try add(row, to: &others) }
        }
        return others.merging(primary) { $1 }
    }

    /// The condition that the resource `r` is the primary original of its asset, by which `ids.toCloud` names it.
    private static let isPrimary = """
        CASE WHEN EXISTS (
            SELECT 1 FROM resource o WHERE o.asset = r.asset AND o.type IN (1, 4) AND \(isRaw("o")) <> \(isRaw("r")))
        THEN NOT \(isRaw("r")) ELSE r.type <> 4 END
        """

    private static func isRaw(_ resource: String) -> String {
        "(\(resource).content_type LIKE '%raw-image' OR \(resource).content_type LIKE '%raw-picture')"
    }

    /// Returns at most ``ChangeRecord/maxEntities`` assets that are marked as damaged because of these bytes.
    func damaged(by digest: ResourceDigest) throws -> [ObjectID] {
        guard let bytes = [UInt8](hexadecimal: digest.text) else { return [] }
        let texts = try database.all(
            """
            SELECT DISTINCT a.id FROM resource r JOIN asset a ON a.row = r.asset
            WHERE r.digest = ? AND r.damage IS NOT NULL ORDER BY a.id LIMIT ?
            """,
            bytes,
            ChangeRecord.maxEntities
        ) { $0.text(0) }
        return try texts.map(AssetRowMapping.identifier)
    }

    /// Returns the assets of a list that are in the trash.
    func trashed(among ids: [ObjectID]) throws -> Set<ObjectID> {
        Set(
            try database.all(
                "SELECT id FROM asset WHERE id IN (SELECT value FROM json_each(?)) AND trashed_date IS NOT NULL",
                jsonList(ids)
            ) { $0.text(0) }.map(AssetRowMapping.identifier)
        )
    }

    /// Returns the frames of a burst, ordered by identifier.
    func frames(ofBurst identifier: String, limit: Int) throws -> [ObjectID] {
        try database.all(
            "SELECT id FROM asset WHERE burst_identifier = ? ORDER BY id LIMIT ?",
            identifier,
            limit
        ) { $0.text(0) }.map(AssetRowMapping.identifier)
    }

    // MARK: Writing

    /// Writes a transaction's insertions, changes and deletions of assets.
    ///
    /// - Parameters:
    ///   - knownRow: returns the row number of an asset; nil to look it up
    ///   - counters: collects the resulting differences in the library's counts
    func save(
        _ changes: [EntityChange<Asset>],
        sequence: Int64,
        knownRow: (ObjectID) -> Int64? = { _ in nil },
        _ counters: inout CounterChanges
    ) throws {
        try deleteMemberships(changes)
        var columns = ColumnUpdate(database)
        for index in changes.indices {
            counters.count(changes[index])
            if let before = changes[index].before, let after = changes[index].after {
                guard let row = try knownRow(after.id) ?? rowNumber(of: after.id) else { throw missingRow(after) }
                try columns.update(before, after, row)
                try updateOtherTables(before, after, row)
            } else if let after = changes[index].after {
                try insert(after)
            } else if let before = changes[index].before {
                try database.run(
                    "INSERT INTO departed SELECT row, id, ? FROM asset WHERE id = ?",
                    sequence,
                    before.id.text
                )
                try database.run("DELETE FROM asset WHERE id = ?", before.id.text)
            }
        }
    }

    private func insert(_ asset: Asset) throws {
        var statement = try SQLStatement(AssetRowMapping.insertion, database)
        for column in AssetRowMapping.columns { column.bind(asset, to: &statement) }
        let row = try statement.insert()
        try insertResources(of: asset, row)
        try insertKeywords(of: asset, row)
        for membership in asset.memberships { try insert(membership, of: asset, row) }
        if let metadata = asset.metadata { try MetadataStore(database: database).save(metadata, of: row) }
    }

    private func missingRow(_ asset: Asset) -> DamagedRow { DamagedRow("\(asset.id) has no row in the database") }

    private func updateOtherTables(_ before: Asset, _ after: Asset, _ row: Int64) throws {
        guard isRecordedElsewhere(before, after) else { return }
        if before.resources != after.resources {
            try database.run("DELETE FROM resource WHERE asset = ?", row)
            try insertResources(of: after, row)
        }
        if before.keywords != after.keywords {
            try database.run("DELETE FROM keyword WHERE asset = ?", row)
            try insertKeywords(of: after, row)
        } else if !after.keywords.isEmpty, before.isVisible != after.isVisible || areCopiesStale(before, after) {
            try database.run(
                "UPDATE keyword SET visible = ?, creation_date = ?, added_date = ? WHERE asset = ?",
                after.isVisible,
                after.creationDate,
                after.addedDate,
                row
            )
        }
        try updateMemberships(before, after, row)
        if before.metadata != after.metadata {
            try MetadataStore(database: database).save(after.metadata, of: row)
        }
    }

    /// Returns true if a change affects values that other tables hold or have copies of, which is rare.
    private func isRecordedElsewhere(_ before: Asset, _ after: Asset) -> Bool {
        before.resources != after.resources || before.keywords != after.keywords
            || before.memberships != after.memberships || before.isVisible != after.isVisible
            || before.isShown != after.isShown || areCopiesStale(before, after) || before.metadata != after.metadata
    }

    /// Returns true if a date changed that other tables have copies of.
    private func areCopiesStale(_ before: Asset, _ after: Asset) -> Bool {
        before.creationDate != after.creationDate || before.addedDate != after.addedDate
    }

    private func updateMemberships(_ before: Asset, _ after: Asset, _ row: Int64) throws {
        let areCopiesStale = before.isShown != after.isShown || areCopiesStale(before, after)
        guard areCopiesStale || before.memberships != after.memberships else { return }
        for membership in after.memberships where !before.memberships.contains(membership) {
            try insert(membership, of: after, row)
        }
        if areCopiesStale {
            try database.run(
                "UPDATE membership SET shown = ?, creation_date = ?, added_date = ? WHERE asset = ?",
                after.isShown,
                after.creationDate,
                after.addedDate,
                row
            )
        }
    }

    /// Deletes the memberships that assets lose, before other assets of the same transaction are inserted with the
    /// same order keys.
    private func deleteMemberships(_ changes: [EntityChange<Asset>]) throws {
        for index in changes.indices {
            let remaining = changes[index].after?.memberships ?? []
            for membership in changes[index].before?.memberships ?? [] where !remaining.contains(membership) {
                try database.run(
                    """
                    DELETE FROM membership
                    WHERE collection = (SELECT row FROM collection WHERE id = ?) AND order_key = ?
                    """,
                    membership.collection.text,
                    membership.key.text
                )
            }
        }
    }

    private func insert(_ membership: Membership, of asset: Asset, _ row: Int64) throws {
        try database.run(
            """
            INSERT INTO membership (collection, order_key, asset, shown, creation_date, added_date)
            VALUES ((SELECT row FROM collection WHERE id = ?), ?, ?, ?, ?, ?)
            """,
            membership.collection.text,
            membership.key.text,
            row,
            asset.isShown,
            asset.creationDate,
            asset.addedDate
        )
    }

    private func insertResources(of asset: Asset, _ row: Int64) throws {
        var statement = try SQLStatement("INSERT INTO resource VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", database)
        for (position, resource) in asset.resources.enumerated() {
            statement.bind(row)
            statement.bind(position)
            statement.bind(resource.type.number)
            statement.bind([UInt8](hexadecimal: resource.digest))
            statement.bind(resource.size)
            statement.bind(resource.contentType)
            statement.bind(resource.originalFilename)
            statement.bind(resource.pixelWidth)
            statement.bind(resource.pixelHeight)
            statement.bind(resource.damage)
            statement.bind(resource.duration)
            statement.bind(resource.offset)
            try statement.run()
        }
    }

    private func insertKeywords(of asset: Asset, _ row: Int64) throws {
        var texts: Set<String> = []
        var foldedTexts: Set<String> = []
        for (position, keyword) in asset.keywords.enumerated() {
            let folded = folded(keyword)
            let isNew = foldedTexts.insert(folded).inserted
            let isRepeated = !texts.insert(keyword).inserted
            try database.run(
                """
                INSERT INTO keyword (asset, position, text, folded, visible, creation_date, added_date, repeats)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """,
                row,
                position,
                keyword,
                folded,
                asset.isVisible,
                asset.creationDate,
                asset.addedDate,
                isNew ? 0 : isRepeated ? 2 : 1
            )
        }
    }
}

/// Updates the columns of the table `asset`, one asset at a time.
///
/// Only the columns that differ are set, since SQLite writes an index only if one of its columns is set. The assets of
/// one transaction usually change in the same columns, so the last statement is used again.
struct ColumnUpdate: ~Copyable {
    private let database: SQLConnection
    /// The columns that the statement sets, as bits by their positions in ``AssetRowMapping/columns``.
    private var bits: UInt64 = 0
    private var statement: SQLStatement?

    init(_ database: SQLConnection) { self.database = database }

    /// - Throws: ``DamagedRow`` if there is no row with the number
    mutating func update(_ before: Asset, _ after: Asset, _ row: Int64) throws {
        let differing = AssetRowMapping.differences(before, after)
        guard differing != 0 else { return }
        var current: SQLStatement
        if let last = statement.take(), bits == differing {
            current = last
        } else {
            current = try SQLStatement(AssetRowMapping.updateStatement(of: differing), database)
            bits = differing
        }
        var remaining = differing
        while remaining != 0 {
            AssetRowMapping.columns[remaining.trailingZeroBitCount].bind(after, to: &current)
            remaining &= remaining - 1
        }
        current.bind(row)
        let count = try current.runCounting()
        statement = consume current
        guard count == 1 else { throw DamagedRow("\(after.id) has no row in the database") }
    }
}
