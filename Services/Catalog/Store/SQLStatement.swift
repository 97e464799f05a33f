import Basics
import GRDB
import GRDBSQLite
import PhotoModel
import PostgreSQL

/// A prepared statement whose values are bound and read one by one, for the commit path: nothing is boxed, and no row and
/// no table of column names is made for each use.
///
/// Values are bound in the order of the placeholders. When it ends, the statement is reset, so that it holds no lock.
struct SQLStatement: ~Copyable {
    /// The statement of the database, which `owner` keeps.
    private let engine: StatementEngine
    private let owner: AnyObject
    private var placeholder: Int32 = 0

    /// Prepares a statement, or uses the prepared one of the connection.
    init(_ sql: String, _ connection: SQLConnection) throws {
        try connection.checkCancellation()
        switch connection.engine {
        case .sqlite(let database):
            let statement = try database.cachedStatement(sql: sql)
            (owner, engine) = (statement, .sqlite(statement.sqliteStatement))
        case .postgresql(let session):
            let execution = PostgreSQLExecution(sql, session)
            (owner, engine) = (execution, .postgresql(Unmanaged.passUnretained(execution)))
        }
    }

    /// Prepares a composed statement for one use and binds its values.
    init(_ fragment: SQLFragment, _ connection: SQLConnection) throws {
        try connection.checkCancellation()
        switch connection.engine {
        case .sqlite(let database):
            let statement = try database.makeStatement(sql: fragment.text)
            (owner, engine) = (statement, .sqlite(statement.sqliteStatement))
        case .postgresql(let session):
            let execution = PostgreSQLExecution(once: fragment.text, session)
            (owner, engine) = (execution, .postgresql(Unmanaged.passUnretained(execution)))
        }
        for value in fragment.values { value.bind(to: &self) }
    }

    deinit {
        if case .sqlite(let pointer) = engine { sqlite3_reset(pointer) }
    }

    // MARK: Binding

    mutating func bind(_ value: Int64) {
        switch engine {
        case .sqlite(let pointer):
            placeholder += 1
            sqlite3_bind_int64(pointer, placeholder, value)
        case .postgresql(let execution): execution._withUnsafeGuaranteedRef { $0.bind(.integer(value)) }
        }
    }

    mutating func bind(_ value: Int) { bind(Int64(value)) }
    mutating func bind(_ value: Bool) { bind(value ? 1 : 0 as Int64) }

    mutating func bind(_ value: Double) {
        switch engine {
        case .sqlite(let pointer):
            placeholder += 1
            sqlite3_bind_double(pointer, placeholder, value)
        case .postgresql(let execution): execution._withUnsafeGuaranteedRef { $0.bind(.number(value)) }
        }
    }

    mutating func bind(_ text: String) {
        guard case .sqlite(let pointer) = engine else { return bind(remote: .text(text)) }
        placeholder += 1
        var text = text
        text.withUTF8 { bytes in
            // SQLite stores NULL for a missing pointer.
            guard let start = bytes.baseAddress else {
                sqlite3_bind_text(pointer, placeholder, "", 0, Self.copied)
                return
            }
            start.withMemoryRebound(to: CChar.self, capacity: bytes.count) { start in
                _ = sqlite3_bind_text(pointer, placeholder, start, Int32(bytes.count), Self.copied)
            }
        }
    }

    mutating func bind(_ bytes: [UInt8]) {
        guard case .sqlite(let pointer) = engine else { return bind(remote: .bytes(bytes)) }
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
        switch engine {
        case .sqlite(let pointer):
            placeholder += 1
            sqlite3_bind_null(pointer, placeholder)
        case .postgresql: bind(remote: .null)
        }
    }

    private func bind(remote value: PostgreSQLValue) {
        if case .postgresql(let execution) = engine { execution._withUnsafeGuaranteedRef { $0.bind(value) } }
    }

    mutating func bind(_ value: Int64?) { if let value { bind(value) } else { bindNull() } }
    mutating func bind(_ value: Int?) { if let value { bind(value) } else { bindNull() } }
    mutating func bind(_ value: Double?) { if let value { bind(value) } else { bindNull() } }
    mutating func bind(_ text: String?) { if let text { bind(text) } else { bindNull() } }
    mutating func bind(_ bytes: [UInt8]?) { if let bytes { bind(bytes) } else { bindNull() } }

    /// Runs the statement with bytes, which SQLite does not copy, as the value of its last placeholder.
    mutating func run(binding bytes: [UInt8]) throws {
        guard case .sqlite(let pointer) = engine else {
            bind(remote: .bytes(bytes))
            return try run()
        }
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
        switch engine {
        case .sqlite(let pointer):
            switch sqlite3_step(pointer) {
            case SQLITE_ROW: return true
            case SQLITE_DONE: return false
            default: throw Self.failure(pointer)
            }
        case .postgresql(let execution): return try execution._withUnsafeGuaranteedRef { try $0.step() }
        }
    }

    /// Calls a closure with each row as it comes from the database, without keeping all of them.
    ///
    /// - Parameter visit: must not use the connection
    borrowing func stream(_ visit: (SQLRow) throws -> Void) throws {
        let row = currentRow
        switch engine {
        case .sqlite: while try step() { try visit(row) }
        case .postgresql(let execution):
            try execution._withUnsafeGuaranteedRef { try $0.stream { try visit(row) } }
        }
    }

    /// Runs a statement without rows, and prepares it for the next values.
    ///
    /// PostgreSQL may report an error only with a later statement of the transaction, at the latest with its commit.
    mutating func run() throws {
        switch engine {
        case .sqlite(let pointer):
            defer {
                sqlite3_reset(pointer)
                placeholder = 0
            }
            while try step() {}
        case .postgresql(let execution): try execution._withUnsafeGuaranteedRef { try $0.run() }
        }
    }

    /// Runs a statement and returns the number of rows that it changed.
    mutating func runCounting() throws -> Int {
        switch engine {
        case .sqlite(let pointer):
            try run()
            return Int(sqlite3_changes(sqlite3_db_handle(pointer)))
        case .postgresql(let execution): return try execution._withUnsafeGuaranteedRef { try $0.runCounting() }
        }
    }

    /// Runs an insertion into a table with row numbers, and returns that of the new row.
    mutating func insert() throws -> Int64 {
        switch engine {
        case .sqlite(let pointer):
            try run()
            return sqlite3_last_insert_rowid(sqlite3_db_handle(pointer))
        case .postgresql(let execution): return try execution._withUnsafeGuaranteedRef { try $0.insert() }
        }
    }

    /// Prepares the statement for the next values after its rows were read.
    mutating func reset() {
        switch engine {
        case .sqlite(let pointer):
            sqlite3_reset(pointer)
            placeholder = 0
        case .postgresql(let execution): execution._withUnsafeGuaranteedRef { $0.reset() }
        }
    }

    private static func failure(_ pointer: OpaquePointer) -> any Error {
        let connection = sqlite3_db_handle(pointer)
        let code = ResultCode(rawValue: sqlite3_extended_errcode(connection))
        // GRDB interrupts the statement of a read whose task is cancelled.
        guard code.primaryResultCode != .SQLITE_INTERRUPT else { return CancellationError() }
        return DatabaseError(
            resultCode: code,
            message: String(cString: sqlite3_errmsg(connection)),
            sql: sqlite3_sql(pointer).map { String(cString: $0) }
        )
    }

    /// The current row.
    var currentRow: SQLRow { SQLRow(engine) }
}

/// A statement of one of the databases, without ownership: a reference count for each value would cost more than reading it.
enum StatementEngine {
    case sqlite(OpaquePointer)
    case postgresql(Unmanaged<PostgreSQLExecution>)
}

// MARK: - Rows

/// A statement's current row: its columns by index from 0, read directly from the database, because a page reads fifty
/// columns of each of a thousand rows, and an intermediate value costs more than the column.
///
/// The types are those of the schema, whose tables are STRICT: a column holds its own type or NULL.
struct SQLRow {
    private let engine: StatementEngine

    /// - Parameter engine: the caller's, which has a current row whenever a column is read
    init(_ engine: StatementEngine) { self.engine = engine }

    func isNull(_ index: Int32) -> Bool {
        switch engine {
        case .sqlite(let statement): sqlite3_column_type(statement, index) == SQLITE_NULL
        case .postgresql(let execution): execution._withUnsafeGuaranteedRef { $0.isNull(index) }
        }
    }

    /// 0 for NULL.
    func int64(_ index: Int32) -> Int64 {
        switch engine {
        case .sqlite(let statement): sqlite3_column_int64(statement, index)
        case .postgresql(let execution): execution._withUnsafeGuaranteedRef { $0.int64(index) }
        }
    }

    func int(_ index: Int32) -> Int { Int(truncatingIfNeeded: int64(index)) }

    func flag(_ index: Int32) -> Bool { int64(index) != 0 }

    /// The empty text for NULL.
    func text(_ index: Int32) -> String {
        switch engine {
        case .sqlite(let statement):
            guard let start = sqlite3_column_text(statement, index) else { return "" }
            let count = Int(sqlite3_column_bytes(statement, index))
            return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
        case .postgresql(let execution): return execution._withUnsafeGuaranteedRef { $0.text(index) }
        }
    }

    /// The bytes of a BLOB as hexadecimal text.
    func hexadecimal(_ index: Int32) -> String {
        switch engine {
        case .sqlite(let statement):
            guard let start = sqlite3_column_blob(statement, index) else { return "" }
            let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index)))
            return bytes.hexadecimal
        case .postgresql(let execution):
            return execution._withUnsafeGuaranteedRef { $0.withBytes(index, "", \.hexadecimal) }
        }
    }

    /// The bytes of a BLOB.
    func bytes(_ index: Int32) -> [UInt8] {
        switch engine {
        case .sqlite(let statement):
            guard let start = sqlite3_column_blob(statement, index) else { return [] }
            return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index))))
        case .postgresql(let execution): return execution._withUnsafeGuaranteedRef { $0.bytes(index) }
        }
    }

    /// 0 for NULL.
    func double(_ index: Int32) -> Double {
        switch engine {
        case .sqlite(let statement): sqlite3_column_double(statement, index)
        case .postgresql(let execution): execution._withUnsafeGuaranteedRef { $0.double(index) }
        }
    }

    func optionalInt64(_ index: Int32) -> Int64? { isNull(index) ? nil : int64(index) }

    func optionalInt(_ index: Int32) -> Int? { isNull(index) ? nil : int(index) }

    func optionalDouble(_ index: Int32) -> Double? {
        isNull(index) ? nil : double(index)
    }

    func optionalText(_ index: Int32) -> String? { isNull(index) ? nil : text(index) }

    /// A value of any type.
    func value(_ index: Int32) -> SQLValue {
        switch engine {
        case .sqlite(let statement):
            switch sqlite3_column_type(statement, index) {
            case SQLITE_INTEGER: .integer(int64(index))
            case SQLITE_FLOAT: .number(double(index))
            case SQLITE_TEXT: .text(text(index))
            case SQLITE_BLOB: .bytes(bytes(index))
            default: .null
            }
        case .postgresql(let execution): SQLValue(execution._withUnsafeGuaranteedRef { $0.value(index) })
        }
    }
}

// MARK: - Composed statements

/// A fragment of SQL with its bound values; values never become SQL text.
struct SQLFragment {
    var text: String
    var values: [SQLValue]

    init(_ text: String, _ values: [SQLValue] = []) {
        self.text = text
        self.values = values
    }

    static func joined(_ pieces: [SQLFragment], _ separator: String) -> SQLFragment {
        SQLFragment(pieces.map(\.text).joined(separator: separator), pieces.flatMap(\.values))
    }

    /// Returns a text as a bound value. SQLite's text binding ends at a zero byte, so a text with one is bound as
    /// bytes.
    static func bound(_ text: String) -> SQLFragment {
        guard text.utf8.contains(0) else { return SQLFragment("?", [.text(text)]) }
        return SQLFragment("CAST(? AS TEXT)", [.bytes(Array(text.utf8))])
    }

    static func bound(_ value: PredicateValue) -> SQLFragment {
        switch value {
        case .null: SQLFragment("NULL")
        case .integer(let number): SQLFragment("?", [.integer(number)])
        case .number(let number): SQLFragment("?", [.number(number)])
        case .text(let text): bound(text)
        }
    }

    static func + (left: SQLFragment, right: SQLFragment) -> SQLFragment {
        SQLFragment(left.text + right.text, left.values + right.values)
    }

    static func + (left: SQLFragment, right: String) -> SQLFragment { SQLFragment(left.text + right, left.values) }
    static func + (left: String, right: SQLFragment) -> SQLFragment { SQLFragment(left + right.text, right.values) }
}
