import GRDB
import GRDBSQLite
import PostgreSQL

/// A prepared statement whose values are bound and read one by one, for the commit path: values are not boxed, and no
/// row and no table of column names is created for each use.
///
/// Values are bound in the order of the placeholders. At the end of its lifetime the statement is reset, so that it
/// holds no lock.
struct SQLStatement: ~Copyable {
    /// The statement of the database, which `owner` retains.
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

/// A statement of one of the databases, without ownership: a reference count for each value would cost more than
/// reading it.
enum StatementEngine {
    case sqlite(OpaquePointer)
    case postgresql(Unmanaged<PostgreSQLExecution>)
}
