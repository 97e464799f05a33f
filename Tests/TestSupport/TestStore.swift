public import Testing

/// The database on which the tests of the catalog run: `SAFELIGHT_STORE=postgresql`, or else SQLite.
public enum TestStore {
    /// True if libraries are in PostgreSQL.
    public static let isPostgreSQL = TestEnvironment.text("SAFELIGHT_STORE") == "postgresql"

    /// Returns the address of the database of a library's folder; nil for a file in the folder.
    public static func address(library folder: String) throws -> String? {
        isPostgreSQL ? try PostgreSQLServer.shared().address(library: folder) : nil
    }

    /// Returns the variables that name the database of a library's folder to programs.
    public static func environment(library folder: String) throws -> [String: String] {
        try address(library: folder).map { ["SAFELIGHT_STORE": $0] } ?? [:]
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips tests of SQLite itself if `SAFELIGHT_STORE=postgresql` is set.
    public static var onlySQLite: Self { .enabled("it is about SQLite", { !TestStore.isPostgreSQL }) }
}
