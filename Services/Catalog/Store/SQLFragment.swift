import PhotoModel

/// A fragment of SQL with its bound values; values never become SQL text.
struct SQLFragment {
    var text: String
    var values: [SQLValue]

    init(_ text: String, _ values: [SQLValue] = []) {
        self.text = text
        self.values = values
    }

    static func joined(_ fragments: [SQLFragment], _ separator: String) -> SQLFragment {
        SQLFragment(fragments.map(\.text).joined(separator: separator), fragments.flatMap(\.values))
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
