import PhotoModel

/// Reads and writes albums and folders in the database, within one transaction.
struct CollectionStore {
    let database: SQLConnection

    // MARK: Reading

    static let collectionColumns = """
        c.row, c.id, c.revision, c.type, c.subtype, c.title, p.id, c.parent_key, c.creation_date, c.modification_date,
        c.start_date, c.end_date, c.asset_count, c.key_asset
        """
    static let collectionSource = "collection c LEFT JOIN list p ON p.row = c.parent"

    /// Returns the same tables as the right side of a join.
    static func collectionSource(on condition: String) -> String {
        "collection c ON \(condition) LEFT JOIN list p ON p.row = c.parent"
    }

    static func collection(_ row: SQLRow) throws -> AssetCollection {
        var collection = AssetCollection(id: try AssetRowMapping.identifier(row[1]), revision: Revision(row[2]))
        collection.type = try AssetRowMapping.named(row[3])
        collection.subtype = try AssetRowMapping.named(row[4])
        try collection.readCommonColumns(row)
        collection.estimatedAssetCount = row[12]
        collection.keyAsset = try (row[13] as String?).map(AssetRowMapping.identifier)
        if collection.type == .moment, case .moment(let moment) = DerivedCollection(collection.id) {
            collection.approximateLocation = moment.cell?.centre
            collection.localizedLocationNames = moment.placeNames
        }
        return collection
    }

    func collection(_ id: ObjectID) throws -> AssetCollection? {
        try database.first(
            "SELECT \(Self.collectionColumns) FROM \(Self.collectionSource) WHERE c.id = ?",
            id.text
        ) { try Self.collection($0) }
    }

    func rowNumber(of id: ObjectID) throws -> Int64? {
        try database.first("SELECT row FROM collection WHERE id = ?", id.text) { $0.int64(0) }
    }

    static let listColumns = """
        l.row, l.id, l.revision, l.type, l.subtype, l.title, p.id, l.parent_key, l.creation_date, l.modification_date,
        l.start_date, l.end_date, l.child_count
        """
    static let listSource = "list l LEFT JOIN list p ON p.row = l.parent"

    /// Returns the same tables as the right side of a join.
    static func listSource(on condition: String) -> String {
        "list l ON \(condition) LEFT JOIN list p ON p.row = l.parent"
    }

    static func list(_ row: SQLRow) throws -> CollectionList {
        var list = CollectionList(id: try AssetRowMapping.identifier(row[1]), revision: Revision(row[2]))
        list.type = try AssetRowMapping.named(row[3])
        list.subtype = try AssetRowMapping.named(row[4])
        try list.readCommonColumns(row)
        list.childCount = row[12]
        return list
    }

    func list(_ id: ObjectID) throws -> CollectionList? {
        try database.first("SELECT \(Self.listColumns) FROM \(Self.listSource) WHERE l.id = ?", id.text) {
            try Self.list($0)
        }
    }

    /// Returns the folder of every album and folder that is in one.
    func parents() throws -> [ObjectID: ObjectID] {
        var parents: [ObjectID: ObjectID] = [:]
        for table in ["collection", "list"] {
            try database.each("SELECT o.id, p.id FROM \(table) o JOIN list p ON p.row = o.parent") { row in
                parents[try AssetRowMapping.identifier(row.text(0))] = try AssetRowMapping.identifier(row.text(1))
            }
        }
        return parents
    }

    /// Returns at most `limit` members in album order.
    func members(of collection: ObjectID, limit: Int) throws -> [ObjectID] {
        try database.all(
            """
            SELECT a.id FROM membership m JOIN asset a ON a.row = m.asset
            WHERE m.collection = (SELECT row FROM collection WHERE id = ?) ORDER BY m.order_key LIMIT ?
            """,
            collection.text,
            limit
        ) { $0.text(0) }.map(AssetRowMapping.identifier)
    }

    /// Returns which of some objects are members of an album.
    func members(of collection: ObjectID, among ids: [ObjectID]) throws -> Set<ObjectID> {
        let members = try database.all(
            """
            SELECT a.id FROM json_each(?) e CROSS JOIN asset a ON a.id = e.value CROSS JOIN membership m
                ON m.asset = a.row
            WHERE m.collection = (SELECT row FROM collection WHERE id = ?)
            """,
            jsonList(ids),
            collection.text
        ) { $0.text(0) }
        return Set(try members.map(AssetRowMapping.identifier))
    }

    func lastMemberKey(of collection: ObjectID) throws -> OrderKey? {
        try database.first(
            """
            SELECT order_key FROM membership WHERE collection = (SELECT row FROM collection WHERE id = ?)
            ORDER BY order_key DESC LIMIT 1
            """,
            collection.text
        ) { $0.text(0) }.map(AssetRowMapping.orderKey)
    }

    func lastChildKey(of list: ObjectID) throws -> OrderKey? {
        let keys = try ["collection", "list"].compactMap { table in
            try database.first(
                """
                SELECT parent_key FROM \(table) WHERE parent = (SELECT row FROM list WHERE id = ?)
                ORDER BY parent_key DESC LIMIT 1
                """,
                list.text
            ) { $0.text(0) }.map(AssetRowMapping.orderKey)
        }
        return keys.max()
    }

    /// Returns the earliest and latest capture date of the members that are not in the trash and not in `excluded`.
    ///
    /// - Returns: nil if there is no such member with a date
    func captureDates(of collection: ObjectID, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>? {
        guard let row = try rowNumber(of: collection) else { return nil }
        var dates: [Int64] = []
        for shown in [0, 1] {
            for direction in ["ASC", "DESC"] {
                var rows = try SQLStatement(
                    """
                    SELECT m.creation_date, a.id FROM membership m JOIN asset a ON a.row = m.asset
                    WHERE m.collection = ? AND m.shown = ? AND m.creation_date IS NOT NULL
                        AND a.trashed_date IS NULL
                    ORDER BY m.creation_date \(direction) LIMIT ?
                    """,
                    database
                )
                rows.bind(row)
                rows.bind(shown)
                // At most all excluded members precede the first other one.
                rows.bind(excluded.count + 1)
                while try rows.step() {
                    if excluded.contains(try AssetRowMapping.identifier(rows.currentRow.text(1))) { continue }
                    dates.append(rows.currentRow.int64(0))
                    break
                }
            }
        }
        guard let first = dates.min(), let last = dates.max() else { return nil }
        return first...last
    }

    // MARK: Writing

    /// Clears the order keys that albums and folders lose, before others of the same transaction are written with
    /// the same keys.
    func clearLostOrderKeys(_ collections: [EntityChange<AssetCollection>], _ lists: [EntityChange<CollectionList>])
        throws
    {
        try clearLostOrderKeys(collections, in: "collection")
        try clearLostOrderKeys(lists, in: "list")
    }

    private func clearLostOrderKeys(_ changes: [EntityChange<some TreeNode>], in table: String) throws {
        for change in changes {
            guard let before = change.before, before.parentKey != nil else { continue }
            guard before.parent != change.after?.parent || before.parentKey != change.after?.parentKey else { continue }
            try database.run("UPDATE \(table) SET parent = NULL, parent_key = NULL WHERE id = ?", before.id.text)
        }
    }

    func save(_ changes: [EntityChange<AssetCollection>]) throws {
        try save(changes, "collection", insert: insert, update: update)
    }

    func save(_ changes: [EntityChange<CollectionList>]) throws {
        try save(changes, "list", insert: insert, update: update)
    }

    private func save<Node: TreeNode>(
        _ changes: [EntityChange<Node>],
        _ table: String,
        insert: (Node) throws -> Void,
        update: (Node) throws -> Void
    ) throws {
        for change in changes {
            switch (change.before, change.after) {
            case (nil, let after?): try insert(after)
            case (_?, let after?): try update(after)
            case (let before?, nil): try database.run("DELETE FROM \(table) WHERE id = ?", before.id.text)
            case (nil, nil): break
            }
        }
    }

    private func insert(_ collection: AssetCollection) throws {
        var moment: Moment?
        if collection.type == .moment, case .moment(let found) = DerivedCollection(collection.id) { moment = found }
        try database.run(
            """
            INSERT INTO collection (id, revision, type, subtype, title, title_folded, parent, parent_key,
                creation_date, modification_date, start_date, end_date, asset_count, key_asset, moment, cluster, year)
            VALUES (?, ?, ?, ?, ?, ?, (SELECT row FROM list WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            collection.id.text,
            collection.revision.sequence,
            collection.type.number,
            collection.subtype.number,
            collection.title,
            collection.title.map(folded),
            collection.parent?.text,
            collection.parentKey?.text,
            collection.creationDate,
            collection.modificationDate,
            collection.startDate,
            collection.endDate,
            collection.estimatedAssetCount,
            collection.keyAsset?.text,
            moment?.key,
            moment?.cluster.key,
            moment?.year.key
        )
    }

    private func update(_ collection: AssetCollection) throws {
        try database.run(
            """
            UPDATE collection SET revision = ?, title = ?, title_folded = ?,
                parent = (SELECT row FROM list WHERE id = ?), parent_key = ?, modification_date = ?, start_date = ?,
                end_date = ?, asset_count = ?, key_asset = ?
            WHERE id = ?
            """,
            collection.revision.sequence,
            collection.title,
            collection.title.map(folded),
            collection.parent?.text,
            collection.parentKey?.text,
            collection.modificationDate,
            collection.startDate,
            collection.endDate,
            collection.estimatedAssetCount,
            collection.keyAsset?.text,
            collection.id.text
        )
    }

    private func insert(_ list: CollectionList) throws {
        try database.run(
            """
            INSERT INTO list (id, revision, type, subtype, title, title_folded, parent, parent_key, creation_date,
                modification_date, start_date, end_date, child_count)
            VALUES (?, ?, ?, ?, ?, ?, (SELECT row FROM list WHERE id = ?), ?, ?, ?, ?, ?, ?)
            """,
            list.id.text,
            list.revision.sequence,
            list.type.number,
            list.subtype.number,
            list.title,
            list.title.map(folded),
            list.parent?.text,
            list.parentKey?.text,
            list.creationDate,
            list.modificationDate,
            list.startDate,
            list.endDate,
            list.childCount
        )
    }

    private func update(_ list: CollectionList) throws {
        try database.run(
            """
            UPDATE list SET revision = ?, title = ?, title_folded = ?, parent = (SELECT row FROM list WHERE id = ?),
                parent_key = ?, modification_date = ?, start_date = ?, end_date = ?, child_count = ?
            WHERE id = ?
            """,
            list.revision.sequence,
            list.title,
            list.title.map(folded),
            list.parent?.text,
            list.parentKey?.text,
            list.modificationDate,
            list.startDate,
            list.endDate,
            list.childCount,
            list.id.text
        )
    }
}

/// An album or a folder: the rows of the two tables form one tree.
private protocol TreeNode {
    var id: ObjectID { get }
    var title: String? { get set }
    var parent: ObjectID? { get set }
    var parentKey: OrderKey? { get set }
    var creationDate: Int64 { get set }
    var modificationDate: Int64 { get set }
    var startDate: Int64? { get set }
    var endDate: Int64? { get set }
}

extension AssetCollection: TreeNode {}
extension CollectionList: TreeNode {}

extension TreeNode {
    /// Reads the columns that both tables have at the same positions.
    fileprivate mutating func readCommonColumns(_ row: SQLRow) throws {
        title = row[5]
        parent = try (row[6] as String?).map(AssetRowMapping.identifier)
        parentKey = try (row[7] as String?).map(AssetRowMapping.orderKey)
        creationDate = row[8]
        modificationDate = row[9]
        startDate = row[10]
        endDate = row[11]
    }
}
