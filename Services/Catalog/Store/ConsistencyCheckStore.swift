import Basics
import GRDB
import JSONValue
import PhotoModel
import PostgreSQL
import Storage

/// A reader of a library's database for consistency checks, while a catalog may be running. It never writes and never
/// checkpoints.
struct ConsistencyCheckStore {
    private enum Source {
        case file(DatabaseQueue)
        case server(PostgreSQLSession, PostgreSQLDurability, location: String)
    }

    private let source: Source

    /// - Parameter server: the address of the database on PostgreSQL; nil for the file in the folder
    init(folder: String, server: String? = nil) throws {
        if let server {
            let session = PostgreSQLSession(server)
            let connection = try session.connect()
            let location = PostgreSQLLibraryDatabase.withoutPassword(server)
            guard try connection.execute("SELECT to_regclass('safelight_schema') IS NOT NULL").int64(0, 0) != 0 else {
                throw StorageError.notFound("the database on PostgreSQL has no library")
            }
            source = .server(session, try PostgreSQLDurability(connection), location: location)
            return
        }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA wal_autocheckpoint = 0") }
        source = .file(try DatabaseQueue(path: "\(folder)/library.sqlite", configuration: configuration))
    }

    private func read<Value>(_ body: (SQLConnection) throws -> Value) throws -> Value {
        switch source {
        case .file(let queue): try queue.read { try body(SQLConnection($0)) }
        case .server(let session, _, _): try session.inReading(body)
        }
    }

    /// Returns true if the database has a table. A library that this version has not opened yet may lack tables; on
    /// PostgreSQL all of them are created together.
    private static func hasTable(_ table: String, _ database: SQLConnection) throws -> Bool {
        try database.sqlite?.tableExists(table) ?? true
    }

    /// Returns the engine with its version, and on PostgreSQL the settings that decide the durability of changes.
    func engine() throws -> JSONObject {
        switch source {
        case .file:
            let version = try read { try $0.first("SELECT sqlite_version()") { $0.text(0) } }
            return ["engine": "sqlite", "version": .string(version ?? "")]
        case .server(_, let durability, let location):
            var json = durability.json
            json["engine"] = "postgresql"
            json["server"] = .string(location)
            return json
        }
    }

    // MARK: The database

    /// The maximum number of problems that are reported.
    private static let maxProblems = 5

    /// Returns the problems of the database, a few at most; empty if there are none.
    ///
    /// - Parameter isDeep: true to decode every asset too, on PostgreSQL
    func problems(isDeep: Bool) throws -> [String] {
        guard case .server(let session, _, _) = source else {
            return try read { database in
                let lines = try database.all("PRAGMA quick_check(\(Self.maxProblems))") { $0.text(0) }
                return lines == ["ok"] ? [] : lines
            }
        }
        var problems: [String] = []
        for table in LibraryMigration.names where problems.count < Self.maxProblems {
            do {
                try check(table, session)
            } catch let error as PostgreSQLError where error.kind != .disconnected {
                problems.append("\(table): \(error.message)")
            }
        }
        guard problems.isEmpty else { return problems }
        do {
            try read(checkHistory)
            if isDeep { try read(decodeAssets) }
        } catch let error as DamagedRow {
            problems.append(error.description)
        }
        return problems
    }

    /// Makes the server read every row of a table, including the parts of long values that it stores separately.
    private func check(_ table: String, _ session: PostgreSQLSession) throws {
        try session.inReading { try $0.stream(SQLFragment("SELECT * FROM \(table)")) { _ in } }
    }

    /// Checks that the change records have no gap, up to the newest sequence.
    private func checkHistory(_ database: SQLConnection) throws {
        guard let head = try HistoryStore(database: database).head() else {
            throw DamagedRow("library: it has no row")
        }
        let sql = "SELECT count(*), coalesce(max(sequence), ?) FROM change WHERE sequence > ?"
        let (count, last) = try database.first(sql, head.oldest, head.oldest) { ($0.int64(0), $0.int64(1)) } ?? (0, 0)
        guard last == head.sequence, count == last - head.oldest else {
            throw DamagedRow("change: there are \(count) records from \(head.oldest) to \(head.sequence)")
        }
    }

    private static let batch = 1000

    private func decodeAssets(_ database: SQLConnection) throws {
        let reader = AssetReader(database: database)
        var last: Int64 = 0
        while true {
            let rows = try database.all("SELECT row FROM asset WHERE row > ? ORDER BY row LIMIT ?", last, Self.batch) {
                $0.int64(0)
            }
            guard let end = rows.last else { return }
            try reader.each(rows[...]) { _, _ in }
            last = end
        }
    }

    /// Returns the newest sequence and the date of its commit in microseconds since 1970; the date is nil without
    /// records.
    func newest() throws -> (sequence: Int64, date: Int64?) {
        try read { database in
            let head = try HistoryStore(database: database).head()?.sequence ?? 0
            let date = try database.first("SELECT date FROM change ORDER BY sequence DESC LIMIT 1") { $0.int64(0) }
            return (head, date)
        }
    }

    func quarantinedCount(atLeast failures: Int) throws -> Int {
        try read { database in
            guard try Self.hasTable("quarantine", database) else { return 0 }
            return try database.first("SELECT count(*) FROM quarantine WHERE failures >= ?", failures) { $0.int(0) }
                ?? 0
        }
    }

    // MARK: Files

    func resourceCount() throws -> Int {
        try read { try $0.first("SELECT count(DISTINCT digest) FROM resource") { $0.int(0) } ?? 0 }
    }

    /// Calls `visit` once for each digest that an asset refers to, ordered by digest. `isRemote` is true if the bytes
    /// can be read from the object store.
    func forEachResource(_ visit: (ResourceDigest, _ size: Int64, _ isRemote: Bool) throws -> Void) throws {
        try read { database in
            let isRemote =
                try Self.hasTable("remote_object", database) ? UploadStateStore.resourceReadableCondition : "0"
            let sql = "SELECT digest, max(size), \(isRemote) FROM resource GROUP BY digest ORDER BY digest"
            try database.stream(SQLFragment(sql)) { row in
                guard let digest = ResourceDigest(row.hexadecimal(0)) else { return }
                try visit(digest, row.int64(1), row.flag(2))
            }
        }
    }

    func isReferenced(_ digest: ResourceDigest) throws -> Bool {
        try read { database in
            guard try Self.hasTable("kept_adjustment", database) else {
                let sql = "SELECT EXISTS (SELECT 1 FROM resource WHERE digest = ?)"
                return try database.first(sql, digest.bytes) { $0.flag(0) } ?? false
            }
            return try ReferencedDigestStore(database: database).contains(digest)
        }
    }
}
