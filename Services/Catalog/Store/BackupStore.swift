import Basics
import GRDB
import PhotoModel
import Storage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A reader of the database copy in a backup, which names the resources of the backup.
struct BackupStore: Sendable {
    private let queue: DatabaseQueue

    /// The digest and the size in bytes of a stored resource.
    struct Resource: Sendable, Equatable {
        let digest: ResourceDigest
        let size: Int64
    }

    /// Opens a copy read-only.
    init(path: String) throws {
        var configuration = Configuration()
        configuration.readonly = true
        queue = try DatabaseQueue(path: path, configuration: configuration)
    }

    func head() throws -> LibraryHead {
        try queue.read { database in
            guard let head = try HistoryStore(database: SQLConnection(database)).head() else {
                throw StorageError.corrupt("the copy of the database has no library row")
            }
            return head
        }
    }

    func resourceCount() throws -> Int {
        try queue.read { try Int.fetchOne($0, sql: "SELECT COUNT(DISTINCT digest) FROM resource") ?? 0 }
    }

    /// Returns each resource once, ordered by digest.
    func resources(after digest: ResourceDigest?, limit: Int) throws -> [Resource] {
        try queue.read { database in
            let start = digest.flatMap { [UInt8](hexadecimal: $0.text) }.map { Data($0) } ?? Data()
            let rows = try Row.fetchAll(
                database,
                sql: "SELECT digest, max(size) FROM resource WHERE digest > ? GROUP BY digest ORDER BY digest LIMIT ?",
                arguments: [start, limit]
            )
            return try rows.map { row in
                guard let digest = ResourceDigest((row[0] as Data).hexadecimal) else {
                    throw DamagedRow("a digest does not have 32 bytes")
                }
                return Resource(digest: digest, size: row[1])
            }
        }
    }

    /// Returns true if the object store had the bytes when the copy was made.
    func isRemote(_ digest: ResourceDigest) throws -> Bool {
        try queue.read { database in
            guard try database.tableExists("remote_object") else { return false }
            return try UploadStateStore(database: SQLConnection(database)).readableSize(of: digest) != nil
        }
    }

    /// Returns an asset to which bytes belong, and the name of their file when it was imported.
    func owner(of digest: ResourceDigest) throws -> (asset: ObjectID?, filename: String?) {
        try queue.read { database -> (asset: ObjectID?, filename: String?) in
            let sql = """
                SELECT a.id, r.original_filename FROM resource r JOIN asset a ON a.row = r.asset WHERE r.digest = ?
                ORDER BY r.asset, r.position LIMIT 1
                """
            let bytes = [UInt8](hexadecimal: digest.text).map { Data($0) }
            guard let row = try Row.fetchOne(database, sql: sql, arguments: [bytes]) else { return (nil, nil) }
            return (ObjectID(row[0] as String), row[1])
        }
    }

    func isReferenced(_ digest: ResourceDigest) throws -> Bool {
        try queue.read { database in
            let bytes = [UInt8](hexadecimal: digest.text).map { Data($0) }
            let sql = "SELECT EXISTS (SELECT 1 FROM resource WHERE digest = ?)"
            return try Bool.fetchOne(database, sql: sql, arguments: [bytes]) ?? false
        }
    }

    func close() throws { try queue.close() }

    /// Starts a new history in a database file, above every sequence number that its old history used.
    ///
    /// The lost library may have made changes after the backup: `gap` sequence numbers are skipped so that no revision
    /// that it assigned is assigned again.
    static func startNewHistory(path: String, history: String, gap: Int64) throws -> LibraryHead {
        let file = try DatabaseFile(path: path, migrator: CatalogSchema.migrator)
        let head = try file.pool.write { database in
            let store = HistoryStore(database: SQLConnection(database))
            guard let head = try store.head() else { throw DamagedRow("the database has no library row") }
            try store.startNewHistory(library: history, sequence: head.sequence + gap)
            try UploadStateStore(database: store.database).confirmAgain()
            return LibraryHead(library: history, sequence: head.sequence + gap, oldest: head.sequence + gap)
        }
        // The file is renamed without its log, so the log is written into it first.
        try file.checkpoint()
        try file.close()
        return head
    }
}
