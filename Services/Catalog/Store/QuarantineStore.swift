import Basics
import Contracts
import GRDB
import PhotoModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What stored bytes did to workers, within one transaction. It is no part of the history: no change tells of it.
struct QuarantineStore {
    let database: Database

    /// Counts harm; forgets what is oldest where there is too much.
    ///
    /// - Returns: the entry as it is now
    func add(_ harm: ReportHarm, date: Int64, most: Int) throws -> QuarantinedResource {
        let failures = try Int.fetchOne(
            database,
            sql: """
                INSERT INTO quarantine (digest, name, reason, service, failures, date) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (digest) DO UPDATE SET name = excluded.name, reason = excluded.reason,
                    service = excluded.service, failures = failures + excluded.failures, date = excluded.date
                RETURNING failures
                """,
            arguments: [harm.digest, harm.name, harm.reason, harm.service, harm.failures, date]
        )
        try database.execute(
            sql: """
                DELETE FROM quarantine WHERE digest IN (
                    SELECT digest FROM quarantine ORDER BY date DESC, digest LIMIT -1 OFFSET ?)
                """,
            arguments: [most]
        )
        return QuarantinedResource(
            digest: harm.digest,
            name: harm.name,
            reason: harm.reason,
            service: harm.service,
            failures: failures ?? harm.failures,
            date: date
        )
    }

    /// Every entry that happened so often, the latest first.
    func entries(atLeast failures: Int) throws -> [QuarantinedResource] {
        let rows = try Row.fetchAll(
            database,
            sql: """
                SELECT digest, name, reason, service, failures, date FROM quarantine WHERE failures >= ?
                ORDER BY date DESC, digest
                """,
            arguments: [failures]
        )
        return rows.map {
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

    /// Forgets one entry, or all.
    func remove(_ digest: String?) throws {
        if let digest {
            try database.execute(sql: "DELETE FROM quarantine WHERE digest = ?", arguments: [digest])
        } else {
            try database.execute(sql: "DELETE FROM quarantine")
        }
    }

    /// The first few assets that have the bytes.
    func assets(with digest: String) throws -> [ObjectID] {
        guard let bytes = [UInt8](hexadecimal: digest) else { return [] }
        let texts = try String.fetchAll(
            database,
            sql: """
                SELECT DISTINCT asset.id FROM resource JOIN asset ON asset.row = resource.asset
                WHERE resource.digest = ? LIMIT ?
                """,
            arguments: [Data(bytes), QuarantinedResource.mostAssets]
        )
        return texts.compactMap { ObjectID($0) }
    }
}
