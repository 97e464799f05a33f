/// A value of a parameter or of a column.
public enum PostgreSQLValue: Sendable, Equatable {
    /// NULL.
    case null
    /// A whole number, for columns of integers, floating-point numbers and booleans.
    case integer(Int64)
    /// A floating-point number.
    case number(Double)
    /// A text in UTF-8 without zero bytes.
    case text(String)
    /// Bytes, for columns of the type `bytea`.
    case bytes([UInt8])
}

/// The types of columns that this module converts, by their object identifiers in the server's catalog.
enum PostgreSQLType {
    static let bool: UInt32 = 16
    static let bytea: UInt32 = 17
    static let name: UInt32 = 19
    static let int8: UInt32 = 20
    static let int2: UInt32 = 21
    static let int4: UInt32 = 23
    static let text: UInt32 = 25
    static let oid: UInt32 = 26
    static let float4: UInt32 = 700
    static let float8: UInt32 = 701
    static let unknown: UInt32 = 705
    static let bpchar: UInt32 = 1042
    static let varchar: UInt32 = 1043

    static func isText(_ type: UInt32) -> Bool {
        type == text || type == varchar || type == bpchar || type == name || type == unknown
    }

    /// Returns the type with which a value is sent if the server does not name one; 0 lets the server decide.
    static func natural(_ value: PostgreSQLValue) -> UInt32 {
        switch value {
        case .null: 0
        case .integer: int8
        case .number: float8
        case .text: text
        case .bytes: bytea
        }
    }
}
