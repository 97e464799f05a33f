import JSONValue
import PhotoModel
import PostgreSQL

/// A value of a column, of one of the types that tables have.
enum SQLValue: Sendable, Equatable {
    case null
    case integer(Int64)
    case number(Double)
    case text(String)
    case bytes([UInt8])
}

/// A type whose values can be bound to a placeholder.
protocol SQLBindable {
    /// Binds the value to the next placeholder.
    func bind(to statement: inout SQLStatement)
}

extension PostgreSQLValue {
    init(_ value: SQLValue) {
        self =
            switch value {
            case .null: .null
            case .integer(let number): .integer(number)
            case .number(let number): .number(number)
            case .text(let text): .text(text)
            case .bytes(let bytes): .bytes(bytes)
            }
    }
}

extension SQLValue {
    init(_ value: some BinaryInteger) { self = .integer(Int64(value)) }
    init(_ number: Double) { self = .number(number) }
    init(_ text: String) { self = .text(text) }

    init(_ value: PostgreSQLValue) {
        self =
            switch value {
            case .null: .null
            case .integer(let number): .integer(number)
            case .number(let number): .number(number)
            case .text(let text): .text(text)
            case .bytes(let bytes): .bytes(bytes)
            }
    }
}

extension Int64: SQLBindable {
    func bind(to statement: inout SQLStatement) { statement.bind(self) }
}

extension Int: SQLBindable {
    func bind(to statement: inout SQLStatement) { statement.bind(self) }
}

extension Bool: SQLBindable {
    func bind(to statement: inout SQLStatement) { statement.bind(self) }
}

extension Double: SQLBindable {
    func bind(to statement: inout SQLStatement) { statement.bind(self) }
}

extension String: SQLBindable {
    func bind(to statement: inout SQLStatement) { statement.bind(self) }
}

extension [UInt8]: SQLBindable {
    func bind(to statement: inout SQLStatement) { statement.bind(self) }
}

extension Optional: SQLBindable where Wrapped: SQLBindable {
    func bind(to statement: inout SQLStatement) {
        if let self { self.bind(to: &statement) } else { statement.bindNull() }
    }
}

extension SQLValue: SQLBindable {
    func bind(to statement: inout SQLStatement) {
        switch self {
        case .null: statement.bindNull()
        case .integer(let number): statement.bind(number)
        case .number(let number): statement.bind(number)
        case .text(let text): statement.bind(text)
        case .bytes(let bytes): statement.bind(bytes)
        }
    }
}

// MARK: - Lists

// A list is one bound value, which `json_each` reads: the same prepared statement serves any number of elements.

/// Returns numbers as a JSON list, for `json_each`.
func jsonList(_ numbers: some Collection<Int64>) -> String {
    var list = "["
    list.reserveCapacity(numbers.count * 8 + 2)
    for number in numbers {
        if list.utf8.count > 1 { list += "," }
        list += String(number)
    }
    return list + "]"
}

/// Returns identifiers as a JSON list, for `json_each`.
func jsonList(_ ids: some Collection<ObjectID>) -> String {
    var list = "["
    list.reserveCapacity(ids.count * (ObjectID.length + 3) + 2)
    for id in ids {
        list += list.utf8.count > 1 ? ",\"" : "\""
        list += id.text
        list += "\""
    }
    return list + "]"
}

/// Returns texts as a JSON list, for `json_each`.
func jsonList(_ texts: [String]) -> String { JSON(texts).text }
