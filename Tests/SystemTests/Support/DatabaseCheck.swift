import TestSupport
import Testing

/// The database of a library, as the program `sqlite3` reads it.
enum DatabaseCheck {
    /// Expects that a database is intact. Does nothing if libraries are in PostgreSQL.
    ///
    /// - Parameters:
    ///   - path: the database file
    ///   - label: a text for the report of a failure
    ///   - foreignKeys: true to check references between tables too
    static func expectIntact(_ path: String, _ label: String = "", foreignKeys: Bool = false) throws {
        guard !TestStore.isPostgreSQL else { return }
        let check = "PRAGMA integrity_check" + (foreignKeys ? "; PRAGMA foreign_key_check" : "")
        let run = try RunningProgram.run(try Needed.program("sqlite3"), ["-readonly", path, check])
        #expect(run.output == "ok\n", "\(label) \(path): \(run.errors)")
    }
}
