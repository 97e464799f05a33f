import Basics
import GRDBSQLite

/// A statement's current row: its columns by index from 0, read straight from the database, because a page reads fifty
/// columns of each of a thousand rows, and a value in between costs more than the column.
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

/// A statement that is being executed, and its current row.
final class StatementCursor {
    private var statement: SQLStatement

    /// - Parameter value: of the only placeholder
    init(_ sql: String, _ value: some SQLBindable, _ database: SQLConnection) throws {
        statement = try SQLStatement(sql, database)
        value.bind(to: &statement)
    }

    var currentRow: SQLRow { statement.currentRow }

    /// Moves to the next row; false at the end.
    func next() throws -> Bool { try statement.step() }
}
