import JSONValue

/// A token of the text form and its byte offset.
struct PredicateToken {
    enum Kind: Equatable {
        /// A key or a keyword of the language.
        case word(String)
        case text(String)
        case number(JSON)
        /// An operator or bracket.
        case sign(String)
        /// The argument for `%@`, `%d` and the like.
        case argument(JSON)
        /// The argument for `%K`.
        case key(String)
        case end
    }

    let kind: Kind
    let offset: Int
}

/// Splits the text form into tokens and substitutes the arguments. An argument is one token, whatever characters it
/// contains.
struct PredicateLexer {
    private let bytes: [UInt8]
    private let arguments: [JSON]
    private var offset = 0
    private var used = 0

    /// The maximum length of the text form in UTF-8 bytes.
    static let maxBytes = 65_536

    private static let signs = ["&&", "||", "==", "!=", "<>", "<=", "=<", ">=", "=>"]

    init(_ text: String, arguments: [JSON]) {
        self.bytes = Array(text.utf8)
        self.arguments = arguments
    }

    /// Returns the tokens, with `end` as the last one.
    mutating func readTokens() throws(PredicateError) -> [PredicateToken] {
        guard bytes.count <= Self.maxBytes else {
            throw PredicateError(
                .limitExceeded,
                "the text of a predicate may have at most \(Self.maxBytes) bytes; pass values as arguments"
            )
        }
        var tokens: [PredicateToken] = []
        while true {
            while offset < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[offset]) { offset += 1 }
            let start = offset
            guard offset < bytes.count else { break }
            tokens.append(PredicateToken(kind: try readToken(), offset: start))
        }
        guard used == arguments.count else {
            throw failure("\(arguments.count) arguments for \(used) placeholders", at: bytes.count)
        }
        tokens.append(PredicateToken(kind: .end, offset: bytes.count))
        return tokens
    }

    private func failure(_ message: String, at offset: Int) -> PredicateError {
        PredicateError(.invalidPredicate, message, offset: offset)
    }

    private func byte(_ ahead: Int = 0) -> UInt8? { offset + ahead < bytes.count ? bytes[offset + ahead] : nil }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "."): true
        default: false
        }
    }

    private mutating func readToken() throws(PredicateError) -> PredicateToken.Kind {
        let first = bytes[offset]
        switch first {
        case UInt8(ascii: "'"), UInt8(ascii: "\""): return .text(try readQuotedText(first))
        case UInt8(ascii: "%"): return try readPlaceholder()
        case 0x30...0x39: return .number(try readNumber())
        case UInt8(ascii: "-"), UInt8(ascii: "."):
            guard let digit = byte(1), (0x30...0x39).contains(digit) || digit == UInt8(ascii: ".") else { break }
            return .number(try readNumber())
        case _ where Self.isWord(first):
            let start = offset
            while let byte = byte(),
                Self.isWord(byte) || byte == UInt8(ascii: "@") && bytes[offset - 1] == UInt8(ascii: ".")
            {
                offset += 1
            }
            return .word(String(decoding: bytes[start..<offset], as: UTF8.self))
        default: break
        }
        let pair = String(decoding: bytes[offset..<min(offset + 2, bytes.count)], as: UTF8.self)
        if Self.signs.contains(pair) {
            offset += 2
            return .sign(pair)
        }
        guard "<>=!&(){}[],".utf8.contains(first) else { throw failure("unexpected character", at: offset) }
        offset += 1
        return .sign(String(decoding: [first], as: UTF8.self))
    }

    private mutating func readQuotedText(_ quote: UInt8) throws(PredicateError) -> String {
        let start = offset
        offset += 1
        var content: [UInt8] = []
        while let byte = byte() {
            offset += 1
            if byte == quote { return String(decoding: content, as: UTF8.self) }
            guard byte == UInt8(ascii: "\\") else {
                content.append(byte)
                continue
            }
            guard let escaped = self.byte() else { break }
            offset += 1
            switch escaped {
            case UInt8(ascii: "n"): content.append(0x0A)
            case UInt8(ascii: "r"): content.append(0x0D)
            case UInt8(ascii: "t"): content.append(0x09)
            case UInt8(ascii: "\\"), UInt8(ascii: "'"), UInt8(ascii: "\""): content.append(escaped)
            // Kept for LIKE, which has escapes of its own.
            case UInt8(ascii: "*"), UInt8(ascii: "?"): content += [UInt8(ascii: "\\"), escaped]
            default: throw failure("escapes are \\n \\r \\t \\\\ \\' \\\" \\* \\?", at: offset - 2)
            }
        }
        throw failure("unterminated quoted text", at: start)
    }

    private mutating func readNumber() throws(PredicateError) -> JSON {
        let start = offset
        offset += 1
        if bytes[start] == UInt8(ascii: "0"), let mark = byte(), mark | 0x20 == UInt8(ascii: "x") {
            offset += 1
            while let byte = byte(), Self.isWord(byte) { offset += 1 }
            let digits = String(decoding: bytes[(start + 2)..<offset], as: UTF8.self)
            guard let value = Int64(digits, radix: 16) else { throw failure("not a valid number", at: start) }
            return .int(value)
        }
        while let byte = byte() {
            let isSign = byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
            guard Self.isWord(byte) || isSign && bytes[offset - 1] | 0x20 == UInt8(ascii: "e") else { break }
            offset += 1
        }
        let text = String(decoding: bytes[start..<offset], as: UTF8.self)
        if let whole = Int64(text) { return .int(whole) }
        // Double also parses texts that are not numbers of this language: "0x1p3", "infinity".
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) || ".eE+-".utf8.contains($0) }),
            let value = Double(text), value.isFinite
        else { throw failure("not a valid number", at: start) }
        return .double(value)
    }

    private mutating func readPlaceholder() throws(PredicateError) -> PredicateToken.Kind {
        let start = offset
        offset += 1
        var letters = ""
        while let byte = byte(), letters.utf8.count < 3, Self.isWord(byte) || byte == UInt8(ascii: "@") {
            letters += String(decoding: [byte], as: UTF8.self)
            offset += 1
            if byte != UInt8(ascii: "l") { break }
        }
        guard used < arguments.count else { throw failure("no argument for %\(letters)", at: start) }
        let value = arguments[used]
        used += 1
        switch letters {
        case "@": return .argument(value)
        case "K":
            guard let name = value.stringValue else { throw failure("%K requires the name of a key", at: start) }
            return .key(name)
        case "d", "i", "u", "ld", "li", "lu", "lld", "lli", "llu":
            guard let whole = value.intValue ?? value.boolValue.map({ $0 ? 1 : 0 }) else {
                throw failure("%\(letters) requires a whole number", at: start)
            }
            return .argument(.int(whole))
        case "f", "lf":
            guard let number = value.doubleValue else { throw failure("%\(letters) requires a number", at: start) }
            return .argument(.double(number))
        default:
            throw PredicateError(
                .invalidPredicate,
                "unknown placeholder",
                offset: start,
                allowed: ["%@", "%K", "%d", "%ld", "%lld", "%i", "%u", "%lu", "%llu", "%f"]
            )
        }
    }
}
