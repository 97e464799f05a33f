import PostgreSQL
import Storage

extension PostgreSQLSchema {
    /// Creates the tables, or brings them to the newest version.
    ///
    /// - Throws: ``StorageError/newerVersion(_:)`` if a newer program has written them, ``StorageError/invalid(_:)`` if
    ///   the database cannot have every text
    static func prepare(_ database: SQLConnection) throws {
        try database.inImmediateTransaction {
            let encoding = try database.first("SELECT current_setting('server_encoding')") { $0.text(0) } ?? "unknown"
            guard encoding == "UTF8" else {
                throw StorageError.invalid(
                    "the database has the encoding \(encoding), and a library needs UTF8: make another one with "
                        + "`createdb --encoding=UTF8 --template=template0 NAME` and name it with --store"
                )
            }
            // Of two catalogs that start at once, one waits for the other.
            try database.each(
                "SELECT pg_advisory_xact_lock(hashtextextended('safelight schema ' || current_schema(), 0))"
            ) {
                _ in
            }
            let exists = try database.first("SELECT to_regclass('safelight_schema') IS NOT NULL") { $0.flag(0) }
            guard exists == true else { return try database.run(once: newest) }
            let known = try database.first("SELECT version FROM safelight_schema") { $0.int64(0) } ?? 0
            guard known <= version else {
                throw StorageError.newerVersion(
                    "the tables have the version \(known), and this program knows \(version): run a newer one"
                )
            }
            for migration in migrations where migration.version > known {
                try database.run(once: migration.sql)
                try database.run("UPDATE safelight_schema SET version = ?", migration.version)
            }
        }
    }

    /// Checks that a replica, whose tables this program cannot change, has those that it knows.
    ///
    /// - Throws: ``StorageError/serverOffline(_:)`` if it has others or none
    static func check(_ database: SQLConnection) throws {
        let exists = try database.first("SELECT to_regclass('safelight_schema') IS NOT NULL") { $0.flag(0) }
        let known = exists == true ? try database.first("SELECT version FROM safelight_schema") { $0.int64(0) } : nil
        guard known == Int64(version) else {
            throw StorageError.serverOffline(
                "the replica has no tables of the version \(version). Start the primary server."
            )
        }
    }
    /// Records in which cluster, database and table the library is, and compares that with the last record: a dump
    /// contains the place where it was made. A replica that is promoted is the same place.
    ///
    /// - Returns: true if the tables are at another place than before, because a dump was loaded
    static func noteOrigin(_ database: SQLConnection) throws -> Bool {
        let mayAsk = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
        guard try database.first(mayAsk, read: { $0.flag(0) }) == true else { return false }
        let here = try database.first(
            """
            SELECT s.system_identifier::text || ' ' || d.oid || ' ' || 'library'::regclass::oid
            FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()
            """
        ) { $0.text(0) }
        let noted = try database.first("SELECT coalesce(origin, '') FROM safelight_schema") { $0.text(0) }
        guard let here, here != noted else { return false }
        try database.run("UPDATE safelight_schema SET origin = ?", here)
        return noted?.isEmpty == false
    }
}
