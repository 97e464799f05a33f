import CPQ

/// The rows of one statement, in PostgreSQL's binary form, and the number of rows that it changed.
public final class PostgreSQLResult {
    private let result: OpaquePointer
    let types: [UInt32]
    /// The number of rows.
    public let count: Int

    /// - Parameters:
    ///   - result: this object frees it
    ///   - types: the types of the columns, if they are known from an earlier result
    init(_ result: OpaquePointer, types: [UInt32]? = nil) {
        self.result = result
        count = Int(PQntuples(result))
        self.types = types ?? (0..<PQnfields(result)).map { PQftype(result, $0) }
    }

    deinit { PQclear(result) }

    /// The number of columns.
    public var columnCount: Int { types.count }

    /// The number of rows that the statement inserted, changed or deleted.
    public var changedRows: Int { PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// The server's name of the command that was carried out, for example `COMMIT`.
    public var command: String { PQcmdStatus(result).map { String(cString: $0) } ?? "" }

    /// Returns true if a value is NULL.
    public func isNull(_ row: Int, _ column: Int) -> Bool { PQgetisnull(result, Int32(row), Int32(column)) == 1 }

    /// Returns the bytes of a value, as the server has sent them; empty for NULL.
    private func block(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer {
        let start = PQgetvalue(result, Int32(row), Int32(column))
        return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, Int32(row), Int32(column))))
    }

    /// Returns a value of an integer type or a boolean; 0 for NULL and for other types.
    public func int64(_ row: Int, _ column: Int) -> Int64 {
        let bytes = block(row, column)
        switch types[column] {
        case PostgreSQLType.int8 where bytes.count == 8:
            return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case PostgreSQLType.int4 where bytes.count == 4:
            return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        case PostgreSQLType.oid where bytes.count == 4:
            return Int64(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
        case PostgreSQLType.int2 where bytes.count == 2:
            return Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
        case PostgreSQLType.bool where bytes.count == 1: return bytes[0] == 0 ? 0 : 1
        case PostgreSQLType.float8: return Int64(exactly: double(row, column).rounded(.towardZero)) ?? 0
        default: return 0
        }
    }

    /// Returns a value of a numeric type; 0 for NULL and for other types.
    public func double(_ row: Int, _ column: Int) -> Double {
        let bytes = block(row, column)
        switch types[column] {
        case PostgreSQLType.float8 where bytes.count == 8:
            return Double(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)))
        case PostgreSQLType.float4 where bytes.count == 4:
            return Double(Float(bitPattern: UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))))
        case PostgreSQLType.float4, PostgreSQLType.float8: return 0
        default: return Double(int64(row, column))
        }
    }

    /// Returns a text; empty for NULL.
    public func text(_ row: Int, _ column: Int) -> String { String(decoding: block(row, column), as: UTF8.self) }

    /// Returns the bytes of a `bytea` or of a text; empty for NULL.
    public func bytes(_ row: Int, _ column: Int) -> [UInt8] { Array(block(row, column)) }

    /// Calls a closure with the bytes of a `bytea` or of a text, which are valid until it returns.
    public func withBytes<Value>(_ row: Int, _ column: Int, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        body(block(row, column))
    }

    /// Returns a value with the type of its column.
    public func value(_ row: Int, _ column: Int) -> PostgreSQLValue {
        guard !isNull(row, column) else { return .null }
        return switch types[column] {
        case PostgreSQLType.bytea: .bytes(bytes(row, column))
        case PostgreSQLType.float4, PostgreSQLType.float8: .number(double(row, column))
        case let type where PostgreSQLType.isText(type): .text(text(row, column))
        default: .integer(int64(row, column))
        }
    }
}
