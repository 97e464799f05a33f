import GRDB
import GRDBSQLite

/// A prepared statement whose values are bound and read one by one with SQLite's own functions, for the commit path:
/// nothing is boxed, and no row and no table of column names is made for each use.
///
/// Values are bound in the order of the placeholders. When it ends, the statement is reset, so that it holds no lock.
struct SQLStatement: ~Copyable {
    private let statement: Statement
    private let database: Database
    private let pointer: OpaquePointer
    private var placeholder: Int32 = 0

    /// Prepares a statement, or takes the prepared one of the connection.
    init(_ sql: String, _ connection: SQLConnection) throws {
        database = connection.sqlite
        statement = try database.cachedStatement(sql: sql)
        pointer = statement.sqliteStatement
    }

    /// Prepares a composed statement for one use and binds its values.
    init(_ fragment: SQLFragment, _ connection: SQLConnection) throws {
        database = connection.sqlite
        statement = try database.makeStatement(sql: fragment.text)
        pointer = statement.sqliteStatement
        for value in fragment.values { value.bind(to: &self) }
    }

    deinit { sqlite3_reset(pointer) }

    // MARK: Binding

    mutating func bind(_ value: Int64) {
        placeholder += 1
        sqlite3_bind_int64(pointer, placeholder, value)
    }

    mutating func bind(_ value: Int) { bind(Int64(value)) }
    mutating func bind(_ value: Bool) { bind(value ? 1 : 0 as Int64) }

    mutating func bind(_ value: Double) {
        placeholder += 1
        sqlite3_bind_double(pointer, placeholder, value)
    }

    mutating func bind(_ text: String) {
        placeholder += 1
        var text = text
        text.withUTF8 { bytes in
            // SQLite takes a missing pointer for NULL.
            guard let start = bytes.baseAddress else { return bindEmptyText() }
            start.withMemoryRebound(to: CChar.self, capacity: bytes.count) { start in
                _ = sqlite3_bind_text(pointer, placeholder, start, Int32(bytes.count), Self.copied)
            }
        }
    }

    private func bindEmptyText() { sqlite3_bind_text(pointer, placeholder, "", 0, Self.copied) }

    mutating func bind(_ bytes: [UInt8]) {
        placeholder += 1
        bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, !bytes.isEmpty else {
                sqlite3_bind_zeroblob(pointer, placeholder, 0)
                return
            }
            sqlite3_bind_blob(pointer, placeholder, start, Int32(bytes.count), Self.copied)
        }
    }

    mutating func bindNull() {
        placeholder += 1
        sqlite3_bind_null(pointer, placeholder)
    }

    mutating func bind(_ value: Int64?) { if let value { bind(value) } else { bindNull() } }
    mutating func bind(_ value: Int?) { if let value { bind(value) } else { bindNull() } }
    mutating func bind(_ value: Double?) { if let value { bind(value) } else { bindNull() } }
    mutating func bind(_ text: String?) { if let text { bind(text) } else { bindNull() } }
    mutating func bind(_ bytes: [UInt8]?) { if let bytes { bind(bytes) } else { bindNull() } }

    /// Runs the statement with bytes, which are not copied, as the value of its last placeholder.
    mutating func run(binding bytes: [UInt8]) throws {
        placeholder += 1
        try bytes.withUnsafeBytes { bytes in
            sqlite3_bind_blob(pointer, placeholder, bytes.baseAddress, Int32(bytes.count), nil)
            defer { sqlite3_bind_null(pointer, placeholder) }
            try run()
        }
    }

    /// The value of SQLITE_TRANSIENT: SQLite copies the bytes.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    // MARK: Running

    /// Steps to the next row; returns false after the last one.
    borrowing func step() throws -> Bool {
        switch sqlite3_step(pointer) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw failure()
        }
    }

    /// Runs a statement without rows, and prepares it for the next values.
    mutating func run() throws {
        defer {
            sqlite3_reset(pointer)
            placeholder = 0
        }
        while try step() {}
    }

    /// Runs a statement and returns the number of rows that it changed.
    mutating func runCounting() throws -> Int {
        try run()
        return Int(sqlite3_changes(sqlite3_db_handle(pointer)))
    }

    /// Runs an insertion into a table with row numbers, and returns that of the new row.
    mutating func insert() throws -> Int64 {
        try run()
        return sqlite3_last_insert_rowid(sqlite3_db_handle(pointer))
    }

    /// Prepares the statement for the next values after its rows were read.
    mutating func reset() {
        sqlite3_reset(pointer)
        placeholder = 0
    }

    private borrowing func failure() -> DatabaseError {
        let connection = sqlite3_db_handle(pointer)
        return DatabaseError(
            resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
            message: String(cString: sqlite3_errmsg(connection)),
            sql: sqlite3_sql(pointer).map { String(cString: $0) }
        )
    }

    /// The columns of the current row.
    var columns: StatementColumns { StatementColumns(pointer) }
}
