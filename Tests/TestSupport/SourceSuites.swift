/// The suites of a test file, parsed from its code.
///
/// The parser is in this module because it is optimised in debug builds too.
public struct SourceSuites: Sendable {
    /// The types, or extensions of types, that directly contain tests, by the last part of their name. Tests outside of
    /// all types have the empty name.
    public private(set) var withTests: Set<String> = []
    /// The types with a `.timeLimit` in their `@Suite(…)`.
    public private(set) var withTimeLimit: Set<String> = []
    /// The full names of the types that directly contain tests, as `Parent/Suite`.
    public private(set) var paths: Set<String> = []

    /// Reads the code of a file.
    ///
    /// - Parameter code: the part ``SourceText/code``, without strings and comments
    public init(_ code: String) {
        var reader = Reader(bytes: Array(code.utf8))
        while let token = reader.next() {
            switch token {
            case .type(let name, let isLimited):
                if isLimited { withTimeLimit.insert(name) }
            case .test(let scopes):
                withTests.insert(scopes.last ?? "")
                paths.insert(scopes.joined(separator: "/"))
            }
        }
    }

    private enum Token {
        case type(String, isLimited: Bool)
        /// A test, with the types that contain it.
        case test([String])
    }

    private struct Reader {
        let bytes: [UInt8]
        private var position = 0
        /// The open braces: the name of the type that begins with each, nil for others.
        private var scopes: [String?] = []
        private var nextScope: String?
        /// The text of an attribute `@Suite` whose type has not been read yet.
        private var suite: String?

        init(bytes: [UInt8]) { self.bytes = bytes }

        mutating func next() -> Token? {
            while position < bytes.count {
                switch bytes[position] {
                case UInt8(ascii: "`"): skip(to: UInt8(ascii: "`"))
                case UInt8(ascii: "/") where isRegex: skipRegex()
                case UInt8(ascii: "{"):
                    scopes.append(nextScope)
                    nextScope = nil
                    position += 1
                case UInt8(ascii: "}"):
                    _ = scopes.popLast()
                    position += 1
                case UInt8(ascii: "@"):
                    position += 1
                    switch word() {
                    case "Suite": suite = parentheses()
                    case "Test":
                        _ = parentheses()
                        // A function inside of a function is not a test.
                        if scopes.last.map({ $0 != nil }) ?? true { return .test(scopes.compactMap(\.self)) }
                    default: break
                    }
                case let letter where Self.isInWord(letter):
                    guard Self.declarations.contains(word()) else { continue }
                    skipSpaces()
                    let name = word(withDots: true).split(separator: ".").last.map(String.init) ?? ""
                    guard !name.isEmpty, !["func", "var", "let"].contains(name) else { continue }
                    nextScope = name
                    let isLimited = suite?.contains(".timeLimit(") ?? false
                    suite = nil
                    return .type(name, isLimited: isLimited)
                default: position += 1
                }
            }
            return nil
        }

        private static let declarations: Set<String> = ["struct", "enum", "class", "actor", "extension", "protocol"]

        private static func isInWord(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                true
            default: byte >= 0x80
            }
        }

        private func byte(_ offset: Int) -> UInt8 {
            bytes.indices.contains(position + offset) ? bytes[position + offset] : 0
        }

        private mutating func word(withDots: Bool = false) -> String {
            let start = position
            while position < bytes.count,
                Self.isInWord(bytes[position]) || (withDots && bytes[position] == UInt8(ascii: "."))
            {
                position += 1
            }
            return String(decoding: bytes[start..<position], as: UTF8.self)
        }

        private mutating func skipSpaces() {
            while [UInt8(ascii: " "), UInt8(ascii: "\n")].contains(byte(0)) { position += 1 }
        }

        private mutating func skip(to end: UInt8) {
            position += 1
            while position < bytes.count, bytes[position] != end { position += 1 }
            position += 1
        }

        /// True at the start of a regular expression, whose braces do not count.
        private var isRegex: Bool {
            [UInt8(ascii: " "), UInt8(ascii: "("), UInt8(ascii: "[")].contains(byte(-1))
                && ![UInt8(ascii: " "), UInt8(ascii: "=")].contains(byte(1))
        }

        private mutating func skipRegex() {
            position += 1
            while position < bytes.count, ![UInt8(ascii: "/"), UInt8(ascii: "\n")].contains(bytes[position]) {
                position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
            }
            position += 1
        }

        /// Returns the text in parentheses at the current position; empty if there are none.
        private mutating func parentheses() -> String {
            guard byte(0) == UInt8(ascii: "(") else { return "" }
            let start = position
            var depth = 0
            repeat {
                if bytes[position] == UInt8(ascii: "(") { depth += 1 }
                if bytes[position] == UInt8(ascii: ")") { depth -= 1 }
                position += 1
            } while depth > 0 && position < bytes.count
            return String(decoding: bytes[start..<position], as: UTF8.self)
        }
    }
}
