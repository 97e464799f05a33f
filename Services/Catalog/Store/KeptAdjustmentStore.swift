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

/// The adjustment data of earlier edits that the history still mentions, so that an edit can be reverted step by step.
///
/// No asset refers to these bytes any more; without this table they would be garbage-collected.
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

    /// Keeps the adjustment data that a record's assets had before it and no longer have.
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

    /// Deletes entries that only the history up to a sequence needed.
    func trim(through sequence: Int64) throws {
        let statement = try database.cachedStatement(sql: "DELETE FROM kept_adjustment WHERE sequence <= ?")
        try statement.execute(arguments: [sequence])
    }

    /// Keeps the adjustment data of all records in the log.
    func backfill() throws {
        let rows = try Row.fetchCursor(
            database,
            sql: "SELECT record FROM change WHERE instr(record, ?) > 0",
            arguments: [Data("\"adjustmentData\"".utf8)]
        )
        while let row = try rows.next() { try keep(ChangeRecord(json: JSON(parsing: Array(row[0] as Data)))) }
    }
}

/// A query of the stored bytes that the database refers to.
struct ReferencedDigestStore {
    let database: Database

    /// Returns all referenced digests that begin with two hexadecimal digits.
    func digests(in part: String) throws -> Set<ResourceDigest> {
        guard let first = UInt8(part, radix: 16) else { return [] }
        // Digests have 32 bytes, so the range from one first byte to the next contains exactly those of this prefix; 33
        // bytes of 255 are greater than any digest.
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
                throw DamagedRow("a digest does not have 32 bytes")
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
