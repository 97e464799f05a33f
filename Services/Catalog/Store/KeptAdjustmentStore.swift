import Basics
import GRDB
import JSONValue
import PhotoModel
import Storage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The adjustment data of earlier edits, as long as the history tells of them: the steps that an edit can go back to.
///
/// No asset has these bytes any more, so that without this table they would be collected.
struct KeptAdjustmentStore {
    let database: Database

    static let schema = """
        CREATE TABLE kept_adjustment (
            sequence INTEGER NOT NULL,
            digest BLOB NOT NULL CHECK (length(digest) = 32),
            PRIMARY KEY (sequence, digest)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX kept_adjustment_digest ON kept_adjustment (digest);
        """

    /// Keeps what the assets of a record had before it, and have no more.
    func keep(_ record: ChangeRecord) throws {
        for change in record.assets {
            guard let before = change.before?.resource(.adjustmentData), let after = change.after,
                after.resource(.adjustmentData)?.digest != before.digest,
                let bytes = [UInt8](hexadecimal: before.digest)
            else { continue }
            let statement = try database.cachedStatement(sql: "INSERT OR IGNORE INTO kept_adjustment VALUES (?, ?)")
            try statement.execute(arguments: [record.sequence, Data(bytes)])
        }
    }

    /// Forgets what only the history up to a sequence told of.
    func trim(through sequence: Int64) throws {
        let statement = try database.cachedStatement(sql: "DELETE FROM kept_adjustment WHERE sequence <= ?")
        try statement.execute(arguments: [sequence])
    }

    /// The same for all records that there are.
    func backfill() throws {
        let rows = try Row.fetchCursor(
            database,
            sql: "SELECT record FROM change WHERE instr(record, ?) > 0",
            arguments: [Data("\"adjustmentData\"".utf8)]
        )
        while let row = try rows.next() { try keep(ChangeRecord(json: JSON(parsing: Array(row[0] as Data)))) }
    }
}

/// Which stored bytes the database names.
struct ReferencedDigestStore {
    let database: Database

    /// All that begin with two hexadecimal digits.
    func digests(in part: String) throws -> Set<ResourceDigest> {
        guard let first = UInt8(part, radix: 16) else { return [] }
        // Digests of 32 bytes: nothing stands between the last of one part and the first byte of the next.
        let (from, to) = (Data([first]), first == 255 ? Data(repeating: 255, count: 33) : Data([first + 1]))
        let rows = try Data.fetchCursor(
            database,
            sql: """
                SELECT digest FROM resource WHERE digest >= ? AND digest < ?
                UNION SELECT digest FROM kept_adjustment WHERE digest >= ? AND digest < ?
                """,
            arguments: [from, to, from, to]
        )
        var found: Set<ResourceDigest> = []
        while let row = try rows.next() {
            guard let digest = ResourceDigest(row.hexadecimal) else {
                throw DamagedRow("a digest has not 32 bytes")
            }
            found.insert(digest)
        }
        return found
    }

    func contains(_ digest: ResourceDigest) throws -> Bool {
        guard let bytes = [UInt8](hexadecimal: digest.text) else { return false }
        let statement = try database.cachedStatement(
            sql: """
                SELECT EXISTS (SELECT 1 FROM resource WHERE digest = ?)
                    OR EXISTS (SELECT 1 FROM kept_adjustment WHERE digest = ?)
                """
        )
        return try Bool.fetchOne(statement, arguments: [Data(bytes), Data(bytes)]) ?? true
    }
}
