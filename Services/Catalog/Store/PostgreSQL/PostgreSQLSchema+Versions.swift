import PostgreSQL
import Storage

extension PostgreSQLSchema {
    /// Creates the tables, or migrates them to the newest version.
    ///
    /// - Throws: ``StorageError/newerVersion(_:)`` if a newer program has written them, ``StorageError/invalid(_:)`` if
    ///   the database cannot store every text
    static func prepare(_ database: SQLConnection) throws {
        try database.inImmediateTransaction {
            let encoding = try database.first("SELECT current_setting('server_encoding')") { $0.text(0) } ?? "unknown"
            guard encoding == "UTF8" else {
                throw StorageError.invalid(
                    "the database has the encoding \(encoding), and a library needs UTF8: create another one with "
                        + "`createdb --encoding=UTF8 --template=template0 NAME` and name it with --store"
                )
            }
            // If two catalogs start at the same time, one waits for the other.
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

    /// Checks that the tables of a replica, which cannot be migrated there, have the newest version.
    ///
    /// - Throws: ``StorageError/serverOffline(_:)`` if they have another version or do not exist
    static func check(_ database: SQLConnection) throws {
        let exists = try database.first("SELECT to_regclass('safelight_schema') IS NOT NULL") { $0.flag(0) }
        let known = exists == true ? try database.first("SELECT version FROM safelight_schema") { $0.int64(0) } : nil
        guard known == Int64(version) else {
            throw StorageError.serverOffline(
                "the replica has no tables of the version \(version). Start the primary server."
            )
        }
    }

    /// Records the cluster, the database and the table of the library, and compares them with the recorded ones: a dump
    /// contains those from which it was made. A promoted replica has the same ones.
    ///
    /// - Returns: true if they differ, because a dump was loaded
    static func noteOrigin(_ database: SQLConnection) throws -> Bool {
        let privilege = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
        guard try database.first(privilege, read: { $0.flag(0) }) == true else { return false }
        let origin = try database.first(
            """
            SELECT s.system_identifier::text || ' ' || d.oid || ' ' || 'library'::regclass::oid
            FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()
            """
        ) { $0.text(0) }
        let recorded = try database.first("SELECT coalesce(origin, '') FROM safelight_schema") { $0.text(0) }
        guard let origin, origin != recorded else { return false }
        try database.run("UPDATE safelight_schema SET origin = ?", origin)
        return recorded?.isEmpty == false
    }
}
