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
}
