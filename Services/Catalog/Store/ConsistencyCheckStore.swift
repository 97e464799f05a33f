import Basics
import GRDB
import PhotoModel
import Storage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A read-only view of a library's database for consistency checks, beside a catalog that may be running. It never
/// writes and never checkpoints.
struct ConsistencyCheckStore {
    private let queue: DatabaseQueue

    init(folder: String) throws {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA wal_autocheckpoint = 0") }
        queue = try DatabaseQueue(path: "\(folder)/library.sqlite", configuration: configuration)
    }

    /// Returns the problems that SQLite finds in the file, at most five; empty if there are none.
    func problems() throws -> [String] {
        try queue.read { database in
            let lines = try String.fetchAll(database, sql: "PRAGMA quick_check(5)")
            return lines == ["ok"] ? [] : lines
        }
    }

    func sqliteVersion() throws -> String {
        try queue.read { try String.fetchOne($0, sql: "SELECT sqlite_version()") ?? "" }
    }

    /// Returns the newest sequence and the date of its commit in microseconds since 1970; the date is nil without
    /// records.
    func newest() throws -> (sequence: Int64, date: Int64?) {
        try queue.read { database in
            let head = try Int64.fetchOne(database, sql: HistoryStore.newestSequenceQuery) ?? 0
            return (head, try Int64.fetchOne(database, sql: "SELECT date FROM change ORDER BY sequence DESC LIMIT 1"))
        }
    }

    func quarantined(atLeast failures: Int) throws -> Int {
        try queue.read { database in
            guard try database.tableExists("quarantine") else { return 0 }
            let sql = "SELECT count(*) FROM quarantine WHERE failures >= ?"
            return try Int.fetchOne(database, sql: sql, arguments: [failures]) ?? 0
        }
    }

    func resourceCount() throws -> Int {
        try queue.read { try Int.fetchOne($0, sql: "SELECT count(DISTINCT digest) FROM resource") ?? 0 }
    }

    /// Calls `visit` once for each digest that an asset refers to, ordered by digest, with whether the object store has
    /// confirmed the bytes.
    func forEachResource(_ visit: (ResourceDigest, _ size: Int64, _ isRemote: Bool) throws -> Void) throws {
        try queue.read { database in
            let isRemote = try database.tableExists("remote_object") ? RemoteObjectStore.isConfirmed : "0"
            let rows = try Row.fetchCursor(
                database,
                sql: "SELECT digest, max(size), \(isRemote) FROM resource GROUP BY digest ORDER BY digest"
            )
            while let row = try rows.next() {
                guard let digest = ResourceDigest((row[0] as Data).hexadecimal) else { continue }
                try visit(digest, row[1], row[2])
            }
        }
    }

    func isReferenced(_ digest: ResourceDigest) throws -> Bool {
        guard let bytes = [UInt8](hexadecimal: digest.text) else { return false }
        return try queue.read { database in
            // A library that this version has not opened yet has no table of the adjustment data of earlier edits.
            guard try database.tableExists("kept_adjustment") else {
                let sql = "SELECT EXISTS (SELECT 1 FROM resource WHERE digest = ?)"
                return try Bool.fetchOne(database, sql: sql, arguments: [Data(bytes)]) ?? false
            }
            return try ReferencedDigestStore(database: SQLConnection(database)).contains(digest)
        }
    }
}
