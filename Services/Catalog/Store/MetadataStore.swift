import JSONValue
import PhotoModel

/// Reads and writes ``AssetMetadata``, in a table of its own that has rows only for assets with metadata.
///
/// The row of an asset stays small, and a change of other properties does not rewrite the metadata.
struct MetadataStore {
    let database: SQLConnection

    /// The counter with the last row whose file has to be read again.
    private static let rereadEnd = "reread.end"

    /// The columns of the keys, in the order of the table. Lists are JSON arrays of texts; those of persons have
    /// objects with a name.
    private static let columns: [(key: PredicateKey, name: String, type: String)] = [
        (.aperture, "aperture", "REAL"), (.exposureTime, "exposure_time", "REAL"), (.iso, "iso", "INTEGER"),
        (.focalLength, "focal_length", "REAL"), (.focalLengthIn35mm, "focal_length_in_35mm", "INTEGER"),
        (.flash, "flash", "INTEGER"), (.imageDirection, "image_direction", "REAL"), (.title, "title", "TEXT"),
        (.headline, "headline", "TEXT"), (.copyright, "copyright", "TEXT"), (.creator, "creator", "TEXT"),
        (.credit, "credit", "TEXT"), (.city, "city", "TEXT"), (.state, "state", "TEXT"), (.country, "country", "TEXT"),
        (.label, "label", "TEXT"), (.software, "software", "TEXT"),
        (.hierarchicalKeywords, "hierarchical_keywords", "TEXT"), (.persons, "persons", "TEXT"),
    ]

    /// Creates the table and the column of ``AssetRowMapping/Marks``, and marks all files to be read again.
    static var schema: String {
        let list = columns.map { ", \($0.name) \($0.type)" }.joined()
        return """
            CREATE TABLE metadata (
                asset INTEGER PRIMARY KEY REFERENCES asset ON DELETE CASCADE\(list)
            ) STRICT;
            ALTER TABLE asset ADD COLUMN marks INTEGER NOT NULL DEFAULT 0;
            INSERT INTO counter SELECT '\(rereadEnd)', coalesce(max(row), 0) FROM asset;
            """
    }

    /// Marks all files to be read again.
    static var rereadAll: String {
        """
        INSERT OR REPLACE INTO counter SELECT '\(rereadEnd)', coalesce(max(row), 0) FROM asset;
        DELETE FROM counter WHERE name = '\(MetadataRereader.position)';
        """
    }

    /// Returns the SQL expression of a key for the asset `a`, NULL if it is missing; nil for other keys.
    static func column(_ key: PredicateKey) -> String? { expressions[key] }

    private static let expressions = Dictionary(
        uniqueKeysWithValues: columns.map { key, name, _ in
            (key, "(SELECT x.\(name) FROM metadata x WHERE x.asset = a.row)")
        }
    )

    /// Returns the condition that one text of a list of the asset `a` passes a test.
    static func any(_ key: PredicateKey, _ test: (_ column: String) -> SQLFragment) -> SQLFragment {
        guard let name = columns.first(where: { $0.key == key })?.name else { return SQLFragment("FALSE") }
        let text = key == .persons ? "json_extract(e.value, '$.name')" : "e.value"
        return "(EXISTS (SELECT 1 FROM metadata x, json_each(x.\(name)) e WHERE x.asset = a.row AND " + test(text)
            + "))"
    }

    // MARK: Reading

    private static let selectionByRow =
        "SELECT asset, " + columns.map(\.name).joined(separator: ", ") + " FROM metadata WHERE asset = ?"

    /// Returns the metadata of a row; nil if it has none.
    func metadata(of row: Int64) throws -> AssetMetadata? {
        try database.first(Self.selectionByRow, row, read: Self.metadata)
    }

    private static func metadata(_ row: SQLRow) throws -> AssetMetadata {
        var metadata = AssetMetadata()
        metadata.aperture = row.optionalDouble(1)
        metadata.exposureTime = row.optionalDouble(2)
        metadata.iso = row.optionalInt(3)
        metadata.focalLength = row.optionalDouble(4)
        metadata.focalLengthIn35mm = row.optionalInt(5)
        metadata.flash = try row.optionalInt(6).map(AssetRowMapping.named)
        metadata.imageDirection = row.optionalDouble(7)
        metadata.title = row.optionalText(8)
        metadata.headline = row.optionalText(9)
        metadata.copyright = row.optionalText(10)
        metadata.creator = row.optionalText(11)
        metadata.credit = row.optionalText(12)
        metadata.city = row.optionalText(13)
        metadata.state = row.optionalText(14)
        metadata.country = row.optionalText(15)
        metadata.label = row.optionalText(16)
        metadata.software = row.optionalText(17)
        metadata.hierarchicalKeywords =
            try json(row.optionalText(18))?.arrayValue?.compactMap(\.stringValue) ?? []
        metadata.persons = try (json(row.optionalText(19))?.arrayValue ?? []).map { try Person(json: $0) }
        return metadata
    }

    private static func json(_ text: String?) throws -> JSON? { try text.map { try JSON(parsing: $0) } }

    // MARK: Writing

    private static let insertion =
        "INSERT INTO metadata VALUES (?\(String(repeating: ", ?", count: columns.count))) "
        + "ON CONFLICT (asset) DO UPDATE SET "
        + columns.map { "\($0.name) = excluded.\($0.name)" }.joined(separator: ", ")

    /// Replaces the metadata of an asset; nil removes them.
    func save(_ metadata: AssetMetadata?, of row: Int64) throws {
        guard let metadata else { return try database.run("DELETE FROM metadata WHERE asset = ?", row) }
        try database.run(
            Self.insertion,
            row,
            metadata.aperture,
            metadata.exposureTime,
            metadata.iso,
            metadata.focalLength,
            metadata.focalLengthIn35mm,
            metadata.flash?.number,
            metadata.imageDirection,
            metadata.title,
            metadata.headline,
            metadata.copyright,
            metadata.creator,
            metadata.credit,
            metadata.city,
            metadata.state,
            metadata.country,
            metadata.label,
            metadata.software,
            Self.text(metadata.hierarchicalKeywords.map(JSON.string)),
            Self.text(metadata.persons.map(\.json))
        )
    }

    private static func text(_ list: [JSON]) -> String? { list.isEmpty ? nil : JSON.array(list).text }

    // MARK: Reading files again

    /// Returns the number of assets whose files have to be read again, and the number of those at or before a row.
    func rereadProgress(through row: Int64) throws -> (done: Int, total: Int) {
        let end = try CounterChanges.value(of: Self.rereadEnd, database)
        let sql = "SELECT count(*), count(*) FILTER (WHERE row <= ?) FROM asset WHERE row <= ?"
        return try database.first(sql, row, end) { (done: $0[1], total: $0[0]) } ?? (0, 0)
    }

    /// Returns the rows after another one of assets whose files have to be read again, in ascending order.
    func rowsToReread(after row: Int64, count: Int) throws -> [Int64] {
        let end = try CounterChanges.value(of: Self.rereadEnd, database)
        let sql = "SELECT row FROM asset WHERE row > ? AND row <= ? ORDER BY row LIMIT ?"
        return try database.all(sql, row, end, count) { $0.int64(0) }
    }
}
