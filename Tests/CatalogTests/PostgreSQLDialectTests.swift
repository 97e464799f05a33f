import Contracts
import GRDB
import JSONValue
import PhotoModel
import PostgreSQL
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of the translation of statements to PostgreSQL, and of its tables.
@Suite(.timeLimit(.minutes(1)))
struct PostgreSQLDialectTests {
    @Test(arguments: [
        ("SELECT a FROM b WHERE c = ? AND d > ?", "SELECT a FROM b WHERE c = $1 AND d > $2"),
        ("SELECT ?1, ?2, ?1", "SELECT $1, $2, $1"),
        ("SELECT '?', \"a?\" FROM b WHERE c = ?", "SELECT '?', \"a?\" FROM b WHERE c = $1"),
        ("a IS ?", "a IS NOT DISTINCT FROM $1"), ("a IS NOT ?", "a IS DISTINCT FROM $1"),
        ("a IS NULL AND b IS NOT NULL", "a IS NULL AND b IS NOT NULL"),
        ("FROM asset a INDEXED BY asset_added WHERE b", "FROM asset a    WHERE b"),
        ("e CROSS JOIN asset a ON b", "e  JOIN asset a ON b"),
        ("INSERT OR IGNORE INTO a VALUES (?)", "INSERT   INTO a VALUES ($1) ON CONFLICT DO NOTHING"),
        ("WHERE (+a.b = 1) AND +c.d = 2", "WHERE (a.b = 1) AND c.d = 2"),
        ("SET a = a + b, c = d + ?", "SET a = a + b, c = d + $1"), ("a OR b", "a OR b"),
    ])
    func `a statement of SQLite becomes one of PostgreSQL`(sql: String, expected: String) {
        func words(_ text: String) -> [Substring] { text.split(separator: " ") }
        #expect(words(PostgreSQLDialect.translate(sql)) == words(expected))
    }

    @Test(arguments: ["city == nil", "title == nil", "NOT software == nil"])
    func `a condition for a missing text is translated without SQLite's unary plus`(condition: String) throws {
        let lowering = PredicateLowering(table: .asset, isRowByRow: true, dialect: .postgresql)
        let lowered = lowering.lower(try Predicate(format: condition, of: .asset).root)
        #expect(!PostgreSQLDialect.translate(lowered.text).contains("+"))
    }

    @Test(arguments: ["ANY persons BEGINSWITH 'a'", "ANY hierarchicalKeywords BEGINSWITH 'a'"])
    func `the beginning of a text within a list is not compared in the collation of the database`(
        condition: String
    ) throws {
        let lowering = PredicateLowering(table: .asset, dialect: .postgresql)
        let lowered = lowering.lower(try Predicate(format: condition, of: .asset).root)
        #expect(lowered.text.contains("substr") && !lowered.text.contains(">="))
    }

    @Test(arguments: ["ANY keywords == 'a'", "ANY keywords IN {'a', 'b'}", "NOT (ANY keywords BEGINSWITH[cd] 'a')"])
    func `the keywords of a limited view are tested for each asset`(condition: String) throws {
        let lowering = PredicateLowering(table: .asset, isListed: true, dialect: .postgresql)
        let lowered = lowering.lower(try Predicate(format: condition, of: .asset).root)
        // Without the offset PostgreSQL would use a join, which reads the keywords of all assets by their index.
        #expect(PostgreSQLDialect.translate(lowered.text).contains(" OFFSET 0))"))
    }

    @Test func `a text about an address does not contain the password`() {
        let hidden = PostgreSQLLibraryDatabase.withoutPassword("postgresql://me:secret@host/db?password=secret&a=b")
        #expect(!hidden.contains("secret") && hidden.contains("//me:") && hidden.contains("@host/db"))
    }

    @Test func `the advice about a server that cannot be used follows from its error message`() {
        func text(_ message: String) -> String {
            let error = PostgreSQLError(.disconnected, message)
            return PostgreSQLLibraryDatabase.offline(error, at: "postgresql://host/db").message
        }
        #expect(text(#"FATAL:  database "db" does not exist"#).contains("createdb"))
        #expect(text(#"FATAL:  password authentication failed for user "me""#).contains("pg_hba.conf"))
        #expect(text(#"FATAL:  role "me" does not exist"#).contains("Check the user"))
        #expect(text("connection refused").contains("Start PostgreSQL"))
        let lost = CatalogErrorMapping.rpcError(CatalogError.standby(writer: "unknown: the connection is lost"))
        #expect(lost.errorCode == .libraryReadOnly && lost.message.contains("start PostgreSQL"))
        #expect(!lost.message.contains("stop that one"))
    }

    /// A column of a table, with the name of its type in SQLite.
    private struct Column: Hashable, CustomStringConvertible {
        let table: String
        let position: Int
        let name: String
        let type: String
        let isRequired: Bool

        var description: String { "\(table).\(name) \(type)\(isRequired ? " NOT NULL" : "") at \(position)" }
    }

    @Test func `the tables of both databases have the same columns in the same order, and the same indexes`() throws {
        let folder = try TemporaryFolder("schema")
        let file = try DatabaseFile(path: folder.file("library.sqlite"), migrator: CatalogSchema.migrator)
        let (columns, indexes) = try file.pool.read { database in
            let connection = SQLConnection(database)
            let tables = try connection.all(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'grdb%'"
            ) { $0.text(0) }
            let columns = try tables.flatMap { table in
                try connection.all("SELECT cid, name, type, \"notnull\", pk FROM pragma_table_info('\(table)')") {
                    row in
                    Column(
                        table: table,
                        position: row.int(0),
                        name: row.text(1),
                        type: row.text(2),
                        isRequired: row.flag(3) || row.flag(4)
                    )
                }
            }
            let indexes = try connection.all(
                "SELECT name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite%'"
            ) { $0.text(0) }
            return (Set(columns), Set(indexes))
        }
        let session = PostgreSQLSession(try PostgreSQLServer.shared().address(schema: "schema_test"))
        let connection = SQLConnection(session)
        try PostgreSQLSchema.prepare(connection)
        // At a second start all tables exist.
        try PostgreSQLSchema.prepare(connection)
        let types = ["bigint": "INTEGER", "double precision": "REAL", "text": "TEXT", "bytea": "BLOB"]
        let found = try connection.all(
            """
            SELECT table_name, ordinal_position - 1, column_name, data_type, is_nullable = 'NO', collation_name
            FROM information_schema.columns WHERE table_schema = current_schema() AND table_name NOT LIKE 'safelight%'
            """
        ) { row in
            #expect(row.text(3) != "text" || row.text(5) == "C", "\(row.text(0)).\(row.text(2))")
            return Column(
                table: row.text(0),
                position: row.int(1),
                name: row.text(2),
                type: types[row.text(3)] ?? row.text(3),
                isRequired: row.flag(4)
            )
        }.filter { $0.name != "epoch" }
        #expect(columns.count > 150)
        #expect(Set(found).symmetricDifference(columns).isEmpty)
        let names = try connection.all(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexname NOT SIMILAR TO '%_(pkey|key)'"
        ) { $0.text(0) }
        #expect(Set(names).symmetricDifference(indexes).isEmpty)
    }

    @Test func `tables of a newer version are refused`() throws {
        let session = PostgreSQLSession(try PostgreSQLServer.shared().address(schema: "newer_test"))
        try PostgreSQLSchema.prepare(SQLConnection(session))
        try SQLConnection(session).inImmediateTransaction {
            try SQLConnection(session).run("UPDATE safelight_schema SET version = ?", PostgreSQLSchema.version + 1)
        }
        let error = #expect(throws: StorageError.self) { try PostgreSQLSchema.prepare(SQLConnection(session)) }
        #expect(error?.name == "newer_version")
    }
}
