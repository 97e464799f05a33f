import PhotoModel

/// Reads many assets at once, in a given order, within one read of the database.
///
/// An asset is a row of `asset` and rows of three other tables. A cursor on each table follows the same list of row
/// numbers, so all four are at the same position of the list, and no rows are collected in memory.
struct AssetReader {
    let database: SQLConnection
    /// The members to read; tables that none of them needs are not read.
    var projection = AssetProjection.full

    /// The statement of each table.
    private struct Statements {
        let assets: String
        let resources: String
        let keywords: String
        let memberships: String

        init(_ dialect: SQLDialect) {
            assets =
                """
                SELECT \(AssetRowMapping.selection), e.key FROM json_each(?) e CROSS JOIN asset a ON a.row = e.atom
                """ + dialect.listOrder()
            resources =
                """
                SELECT e.key, \(resourceColumns)
                FROM json_each(?) e CROSS JOIN resource r ON r.asset = e.atom
                """ + dialect.listOrder(then: "r.position")
            keywords =
                "SELECT e.key, k.text FROM json_each(?) e CROSS JOIN keyword k ON k.asset = e.atom"
                + dialect.listOrder(then: "k.position")
            memberships =
                """
                SELECT e.key, \(membershipColumns)
                FROM json_each(?) e CROSS JOIN membership m INDEXED BY membership_asset ON m.asset = e.atom
                    CROSS JOIN collection c ON c.row = m.collection
                """ + dialect.listOrder(then: "c.id")
        }
    }

    private static let statements = PerDialect(Statements.init)
    private static let keyColumn = Int32(AssetRowMapping.columns.count + 1)

    /// The number of assets that are read together from PostgreSQL, whose results are in memory as a whole: the texts
    /// of one asset may have a megabyte.
    private static let serverBatch = 100

    /// Calls a closure with each asset in the order of the row numbers; those that do not exist are left out.
    func each(_ rows: some Collection<Int64>, _ visit: (Int64, Asset) throws -> Void) throws {
        guard database.dialect == .postgresql, projection.hasKeywords || projection.hasMemberships else {
            return try eachAtOnce(rows, visit)
        }
        var rest = Array(rows)[...]
        while !rest.isEmpty {
            try eachAtOnce(rest.prefix(Self.serverBatch), visit)
            rest = rest.dropFirst(Self.serverBatch)
        }
    }

    private func eachAtOnce(_ rows: some Collection<Int64>, _ visit: (Int64, Asset) throws -> Void) throws {
        let list = jsonList(rows)
        let statements = Self.statements[database.dialect]
        let assets = try cursor(statements.assets, list)
        var resources = try projection.hasResources ? Parts(cursor(statements.resources, list)) : nil
        var keywords = try projection.hasKeywords ? Parts(cursor(statements.keywords, list)) : nil
        var memberships = try projection.hasMemberships ? Parts(cursor(statements.memberships, list)) : nil
        while try assets.next() {
            var asset = try AssetRowMapping.asset(assets.currentRow)
            let position = assets.currentRow.int64(Self.keyColumn)
            try resources?.each(at: position) { asset.resources.append(try Self.resource($0)) }
            try keywords?.each(at: position) { asset.keywords.append($0.text(1)) }
            try memberships?.each(at: position) { asset.memberships.append(try Self.membership($0)) }
            let row = assets.currentRow.int64(0)
            if projection.hasMetadata, AssetRowMapping.marks(assets.currentRow).contains(.hasMetadata) {
                asset.metadata = try MetadataStore(database: database).metadata(of: row)
            }
            try visit(row, asset)
        }
        guard resources?.isAtEnd != false, keywords?.isAtEnd != false, memberships?.isAtEnd != false else {
            throw DamagedRow("a resource, a keyword or a membership has no asset")
        }
    }

    private func cursor(_ sql: String, _ list: String) throws -> StatementCursor {
        try StatementCursor(sql, list, database)
    }

    /// The columns of the table `resource r` that ``resource(_:)`` reads, after a first column.
    static let resourceColumns = """
        r.type, r.digest, r.size, r.content_type, r.original_filename, r.pixel_width, r.pixel_height, r.damage,
            r.duration, r.file_offset
        """

    static func resource(_ row: SQLRow) throws -> AssetResource {
        AssetResource(
            type: try AssetRowMapping.resourceType(row.int(1)),
            digest: row.hexadecimal(2),
            size: row.int64(3),
            offset: row.optionalInt64(10),
            contentType: row.text(4),
            originalFilename: row.optionalText(5),
            pixelWidth: row.int(6),
            pixelHeight: row.int(7),
            duration: row.optionalInt64(9),
            damage: row.optionalText(8)
        )
    }

    /// The columns of the tables `collection c` and `membership m` that ``membership(_:)`` reads, after a first column.
    static let membershipColumns = "c.id, m.order_key"

    static func membership(_ row: SQLRow) throws -> Membership {
        Membership(
            collection: try AssetRowMapping.identifier(row.text(1)),
            key: try AssetRowMapping.orderKey(row.text(2))
        )
    }
}

/// The rows of another table that belong to the assets, in the order of the assets: the first column is the position of
/// the asset.
private struct Parts {
    private let cursor: StatementCursor
    /// The position of the current row; nil at the end.
    private var position: Int64?

    init(_ cursor: StatementCursor) throws {
        self.cursor = cursor
        try advance()
    }

    var isAtEnd: Bool { position == nil }

    private mutating func advance() throws { position = try cursor.next() ? cursor.currentRow.int64(0) : nil }

    /// Calls a closure with each row of the asset at a position.
    mutating func each(at asset: Int64, _ visit: (SQLRow) throws -> Void) throws {
        while position == asset {
            try visit(cursor.currentRow)
            try advance()
        }
    }
}

/// A statement that is being executed, and its current row.
private final class StatementCursor {
    private var statement: SQLStatement

    /// - Parameter value: the value of the only placeholder
    init(_ sql: String, _ value: some SQLBindable, _ database: SQLConnection) throws {
        statement = try SQLStatement(sql, database)
        value.bind(to: &statement)
    }

    var currentRow: SQLRow { statement.currentRow }

    /// Moves to the next row; false at the end.
    func next() throws -> Bool { try statement.step() }
}
