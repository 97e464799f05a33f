/// The differences between the databases in single statements. ``PostgreSQLDialect`` translates those that concern all.
enum SQLDialect: Sendable {
    case sqlite, postgresql

    /// Returns the clause that orders a join by the position in its list. SQLite reads the list in order without it.
    ///
    /// - Parameter column: the second column of the order, which is that of the index that SQLite uses
    func listOrder(then column: String? = nil) -> String {
        self == .sqlite ? "" : " ORDER BY e.key" + (column.map { ", " + $0 } ?? "")
    }

    /// Returns the clause that puts missing values last. SQLite does so in descending order anyway, and PostgreSQL in
    /// ascending order.
    func missingLast(ascending: Bool) -> String {
        ascending == (self == .sqlite) ? " NULLS LAST" : ""
    }

    /// The statements about the trigger that registers the bytes of new resources for upload.
    var uploadTrigger: (exists: String, create: String) {
        switch self {
        case .sqlite:
            (
                "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = 'remote_object_new')",
                """
                CREATE TRIGGER remote_object_new AFTER INSERT ON resource BEGIN
                    INSERT OR IGNORE INTO remote_object (digest, size, state, attempts, kept, date)
                        VALUES (NEW.digest, 0, 1, 0, 0, 0);
                END
                """
            )
        case .postgresql:
            (
                """
                SELECT EXISTS (
                    SELECT 1 FROM pg_trigger WHERE tgname = 'remote_object_new' AND tgrelid = 'resource'::regclass)
                """,
                """
                CREATE TRIGGER remote_object_new AFTER INSERT ON resource
                    FOR EACH ROW EXECUTE FUNCTION remote_object_new()
                """
            )
        }
    }

    var dropUploadTrigger: String {
        self == .sqlite
            ? "DROP TRIGGER IF EXISTS remote_object_new" : "DROP TRIGGER IF EXISTS remote_object_new ON resource"
    }
}

/// A value for each dialect, such as a composed statement, which is created once.
struct PerDialect<Value: Sendable>: Sendable {
    private let sqlite: Value
    private let postgresql: Value

    init(_ make: (SQLDialect) -> Value) { (sqlite, postgresql) = (make(.sqlite), make(.postgresql)) }

    subscript(_ dialect: SQLDialect) -> Value { dialect == .sqlite ? sqlite : postgresql }
}
