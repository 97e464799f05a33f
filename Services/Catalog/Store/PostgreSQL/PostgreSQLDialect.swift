/// The translation of statements, which are written for SQLite, to PostgreSQL: the differences that concern all
/// statements.
///
/// Differences of single statements are in ``SQLDialect``, those of types and functions in ``PostgreSQLSchema``.
enum PostgreSQLDialect {
    /// Returns a statement for PostgreSQL:
    ///
    /// - `?` and `?1` become `$1`
    /// - `IS ?` and `IS NOT ?` become comparisons that treat NULL as a value
    /// - `INDEXED BY index` is left out, and so is the plus that keeps SQLite from using an index
    /// - `CROSS JOIN`, which keeps SQLite from changing the order of tables, becomes `JOIN`
    /// - `INSERT OR IGNORE` becomes `INSERT … ON CONFLICT DO NOTHING`
    static func translate(_ sql: String) -> String {
        var tokens = tokens(of: sql)
        var placeholders = 0
        var ignoresConflicts = false
        for index in tokens.indices {
            let before = Self.word(tokens, Self.previous(tokens, index))
            switch tokens[index].uppercased() {
            case let token where token.hasPrefix("?"):
                placeholders += 1
                tokens[index] = "$" + (token == "?" ? "\(placeholders)" : String(token.dropFirst()))
                makeNullSafe(&tokens, index)
            case "INDEXED":
                guard let by = next(tokens, index), word(tokens, by) == "BY", let name = next(tokens, by) else {
                    continue
                }
                for position in index...name { tokens[position] = "" }
            case "CROSS": tokens[index] = ""
            case "OR" where before == "INSERT":
                guard let ignore = next(tokens, index), word(tokens, ignore) == "IGNORE" else { continue }
                (tokens[index], tokens[ignore], ignoresConflicts) = ("", "", true)
            case "+" where index + 1 < tokens.count && isWord(tokens[index + 1]) && unaryContexts.contains(before):
                tokens[index] = ""
            default: break
            }
        }
        return tokens.joined() + (ignoresConflicts ? " ON CONFLICT DO NOTHING" : "")
    }

    /// Returns the position of the token after another one, without white space.
    private static func next(_ tokens: [String], _ index: Int) -> Int? {
        tokens.indices.dropFirst(index + 1).first { !isSpace(tokens[$0]) }
    }

    private static func previous(_ tokens: [String], _ index: Int) -> Int? {
        tokens.indices.prefix(index).last { !isSpace(tokens[$0]) }
    }

    private static func word(_ tokens: [String], _ index: Int?) -> String {
        index.map { tokens[$0].uppercased() } ?? ""
    }

    private static func makeNullSafe(_ tokens: inout [String], _ index: Int) {
        guard let before = previous(tokens, index) else { return }
        switch word(tokens, before) {
        case "IS": tokens[before] = "IS NOT DISTINCT FROM"
        case "NOT":
            guard let test = previous(tokens, before), word(tokens, test) == "IS" else { return }
            (tokens[test], tokens[before]) = ("IS DISTINCT", "FROM")
        default: break
        }
    }

    /// The tokens after which a plus has no left operand.
    private static let unaryContexts: Set = [
        "(", ",", "AND", "OR", "NOT", "WHERE", "ON", "BY", "SELECT", "WHEN", "THEN",
    ]

    private static func isSpace(_ token: String) -> Bool { token.utf8.allSatisfy { $0 == 0x20 || $0 == 0x0A } }

    private static func isWord(_ token: String) -> Bool { token.utf8.first.map(isLetter) ?? false }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Splits a statement into words, numbers, quoted texts, placeholders, white space and single signs.
    private static func tokens(of sql: String) -> [String] {
        let bytes = Array(sql.utf8)
        var tokens: [String] = []
        var index = 0
        while index < bytes.count {
            let start = index
            let first = bytes[index]
            index += 1
            func skip(while condition: (UInt8) -> Bool) {
                while index < bytes.count, condition(bytes[index]) { index += 1 }
            }
            switch first {
            case 0x27, 0x22:
                skip { $0 != first }
                index = min(index + 1, bytes.count)
            case 0x20, 0x0A: skip { $0 == 0x20 || $0 == 0x0A }
            case 0x3F: skip(while: isDigit)
            case _ where isLetter(first): skip { isLetter($0) || isDigit($0) }
            case _ where isDigit(first): skip { isDigit($0) || $0 == 0x2E }
            default: break
            }
            tokens.append(String(decoding: bytes[start..<index], as: UTF8.self))
        }
        return tokens
    }
}
