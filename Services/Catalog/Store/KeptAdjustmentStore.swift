import Basics
import JSONValue
import PhotoModel

/// The adjustment data of earlier edits that the history still mentions, and the images of other programs' edits, so
/// that an edit can be undone step by step.
///
/// No asset refers to these bytes any more, so they would be garbage-collected without this table.
struct KeptAdjustmentStore {
    let database: SQLConnection

    static let schema = """
        CREATE TABLE kept_adjustment (
            sequence INTEGER NOT NULL,
            digest BLOB NOT NULL CHECK (length(digest) = 32),
            PRIMARY KEY (sequence, digest)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX kept_adjustment_digest ON kept_adjustment (digest);
        """

    /// Keeps the adjustment data that a record's assets had before it and no longer have, and the images of edits that
    /// only another program could render again.
    func keep(_ record: ChangeRecord) throws {
        for index in record.assets.indices {
            let (old, new) = (record.assets[index].before?.resources, record.assets[index].after?.resources)
            guard let old, let new, old != new else { continue }
            guard let before = record.assets[index].before, let after = record.assets[index].after else { continue }
            try keep(before.keptForUndo(after: after), record.sequence)
        }
    }

    private func keep(_ digests: [String], _ sequence: Int64) throws {
        for digest in digests {
            guard let bytes = [UInt8](hexadecimal: digest) else { continue }
            try database.run("INSERT OR IGNORE INTO kept_adjustment VALUES (?, ?)", sequence, bytes)
        }
    }

    /// Deletes the entries of the records up to a sequence.
    func trim(through sequence: Int64) throws {
        try database.run("DELETE FROM kept_adjustment WHERE sequence <= ?", sequence)
    }

    /// Keeps the adjustment data of all records in the log.
    func backfill() throws {
        try database.each("SELECT record FROM change WHERE instr(record, ?) > 0", Array("\"adjustmentData\"".utf8)) {
            row in
            let record = try ChangeRecord(json: JSON(parsing: row.bytes(0)))
            for change in record.assets {
                guard let before = change.before, let after = change.after else { continue }
                // Images of edits that are older than this table were garbage-collected.
                try keep(before.adjustmentDataForUndo(after: after), record.sequence)
            }
        }
    }
}

extension Asset {
    /// Returns the digest of the adjustment data that an asset no longer has after a change.
    fileprivate func adjustmentDataForUndo(after: Asset) -> [String] {
        guard let data = resource(.adjustmentData)?.digest, after.resource(.adjustmentData)?.digest != data else {
            return []
        }
        return [data]
    }

    /// Returns the digests that `edits.undo` needs to restore this version.
    ///
    /// The editor renders its own lists again from the original. An edit of another program, and a list on top of one,
    /// need their images. While one program continues to edit, only its last image is kept.
    fileprivate func keptForUndo(after: Asset) -> [String] {
        var digests = adjustmentDataForUndo(after: after)
        let base = resource(.adjustmentBasePhoto)
        let isRenderedAgain = adjustmentFormatIdentifier == AdjustmentList.formatIdentifier && base == nil
        guard hasAdjustments, mediaType == .image, !isRenderedAgain,
            after.adjustmentFormatIdentifier != adjustmentFormatIdentifier
        else { return digests }
        let current = Set(after.resources.map(\.digest))
        for resource in [resource(.fullSizePhoto), base].compactMap({ $0 }) where !current.contains(resource.digest) {
            digests.append(resource.digest)
        }
        return digests
    }
}
