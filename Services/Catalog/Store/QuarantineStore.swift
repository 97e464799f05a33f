import Basics
import Contracts
import PhotoModel

/// Counts the worker crashes and hangs that stored bytes caused, within one transaction. The quarantine is not part of
/// the history: no change record mentions it.
struct QuarantineStore {
    let database: SQLConnection

    /// Counts a failure and deletes the oldest entries beyond `maxEntries`.
    ///
    /// - Returns: the entry after the change
    func add(_ fault: ReportWorkerFault, date: Int64, maxEntries: Int) throws -> QuarantinedResource {
        let failures = try database.first(
            """
            INSERT INTO quarantine (digest, name, reason, service, failures, date) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (digest) DO UPDATE SET name = excluded.name, reason = excluded.reason,
                service = excluded.service, failures = quarantine.failures + excluded.failures, date = excluded.date
            RETURNING failures
            """,
            fault.digest,
            fault.name,
            fault.reason,
            fault.service,
            fault.failures,
            date
        ) { $0.int(0) }
        try database.run(
            """
            DELETE FROM quarantine WHERE digest IN (
                SELECT digest FROM quarantine ORDER BY date DESC, digest LIMIT 9223372036854775807 OFFSET ?)
            """,
            maxEntries
        )
        return QuarantinedResource(
            digest: fault.digest,
            name: fault.name,
            reason: fault.reason,
            service: fault.service,
            failures: failures ?? fault.failures,
            date: date
        )
    }

    /// Returns every entry with at least a number of failures, the latest first.
    func entries(atLeast failures: Int) throws -> [QuarantinedResource] {
        try database.all(
            """
            SELECT digest, name, reason, service, failures, date FROM quarantine WHERE failures >= ?
            ORDER BY date DESC, digest
            """,
            failures
        ) {
            QuarantinedResource(
                digest: $0[0],
                name: $0[1],
                reason: $0[2],
                service: $0[3],
                failures: $0[4],
                date: $0[5]
            )
        }
    }

    /// Deletes one entry, or all if the digest is nil.
    func remove(_ digest: String?) throws {
        if let digest {
            try database.run("DELETE FROM quarantine WHERE digest = ?", digest)
        } else {
            try database.run("DELETE FROM quarantine")
        }
    }

    /// Returns at most ``QuarantinedResource/maxAssets`` assets that have the bytes.
    func assets(with digest: String) throws -> [ObjectID] {
        guard let bytes = [UInt8](hexadecimal: digest) else { return [] }
        let texts = try database.all(
            """
            SELECT DISTINCT asset.id FROM resource JOIN asset ON asset.row = resource.asset
            WHERE resource.digest = ? LIMIT ?
            """,
            bytes,
            QuarantinedResource.maxAssets
        ) { $0.text(0) }
        return texts.compactMap { ObjectID($0) }
    }
}
