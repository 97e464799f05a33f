import Basics
import GRDB
import JSONValue
import PhotoModel

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
