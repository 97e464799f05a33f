import Basics
import GRDBSQLite

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

    /// Returns an integer; 0 for NULL.
    func int64(_ index: Int32) -> Int64 {
        switch engine {
        case .sqlite(let statement): sqlite3_column_int64(statement, index)
        case .postgresql(let execution): execution._withUnsafeGuaranteedRef { $0.int64(index) }
        }
    }

    func int(_ index: Int32) -> Int { Int(truncatingIfNeeded: int64(index)) }

    func flag(_ index: Int32) -> Bool { int64(index) != 0 }

    /// Returns a text; the empty text for NULL.
    func text(_ index: Int32) -> String {
        switch engine {
        case .sqlite(let statement):
            guard let start = sqlite3_column_text(statement, index) else { return "" }
            let count = Int(sqlite3_column_bytes(statement, index))
            return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
        case .postgresql(let execution): return execution._withUnsafeGuaranteedRef { $0.text(index) }
        }
    }

    /// Returns the bytes of a BLOB as hexadecimal text.
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

    /// Returns the bytes of a BLOB.
    func bytes(_ index: Int32) -> [UInt8] {
        switch engine {
        case .sqlite(let statement):
            guard let start = sqlite3_column_blob(statement, index) else { return [] }
            return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index))))
        case .postgresql(let execution): return execution._withUnsafeGuaranteedRef { $0.bytes(index) }
        }
    }

    /// Returns a floating-point number; 0 for NULL.
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

    /// Returns a value of any type.
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

// MARK: - Columns by type

/// A type that columns are read as.
protocol SQLReadable {
    /// Reads a column of the current row.
    init(_ row: SQLRow, _ index: Int32)
}

extension Int64: SQLReadable {
    init(_ row: SQLRow, _ index: Int32) { self = row.int64(index) }
}

extension Int: SQLReadable {
    init(_ row: SQLRow, _ index: Int32) { self = row.int(index) }
}

extension Bool: SQLReadable {
    init(_ row: SQLRow, _ index: Int32) { self = row.flag(index) }
}

extension Double: SQLReadable {
    init(_ row: SQLRow, _ index: Int32) { self = row.double(index) }
}

extension String: SQLReadable {
    init(_ row: SQLRow, _ index: Int32) { self = row.text(index) }
}

extension [UInt8]: SQLReadable {
    init(_ row: SQLRow, _ index: Int32) { self = row.bytes(index) }
}

extension Optional: SQLReadable where Wrapped: SQLReadable {
    init(_ row: SQLRow, _ index: Int32) { self = row.isNull(index) ? nil : Wrapped(row, index) }
}

extension SQLValue: SQLReadable {
    init(_ row: SQLRow, _ index: Int32) { self = row.value(index) }
}

extension SQLRow {
    /// A column as the type that the caller expects; a NULL is nil, or 0 or empty if the type is not optional.
    subscript<Value: SQLReadable>(_ index: Int32) -> Value { Value(self, index) }
}
