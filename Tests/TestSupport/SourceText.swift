/// Swift source, separated into code, strings and comments. The code contains neither comments nor the content of
/// strings.
///
/// Each part has all line breaks, so that line numbers match the file. Line comments, nested block comments, and
/// plain, multi-line and raw strings are recognized; an interpolation is part of its string.
///
/// The parser is in this module because it is optimised in debug builds too.
public struct SourceText: Sendable {
    public let lineCount: Int
    public let code: String
    public let strings: String
    public let comments: String
    /// Code and strings.
    public let withoutComments: String

    public init(_ text: String) {
        var reader = Reader(bytes: Array(text.utf8))
        reader.read()
        lineCount = reader.bytes.count(where: { $0 == Byte.newline })
        code = String(decoding: reader.code, as: UTF8.self)
        strings = String(decoding: reader.strings, as: UTF8.self)
        comments = String(decoding: reader.comments, as: UTF8.self)
        withoutComments = String(decoding: reader.all, as: UTF8.self)
    }

    /// Returns the numbers of the lines of a part that match a pattern, counted from 1.
    public static func lines(of part: String, holding pattern: some RegexComponent) -> [Int] {
        part.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
            .filter { $0.element.contains(pattern) }
            .map { $0.offset + 1 }
    }

    /// The imported modules.
    public var imports: Set<String> {
        let statement =
            /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)?import\s+(?:(?:struct|class|enum|func|protocol|typealias|var|let|actor)\s+)?(\w+)/
        let candidates = code.split(separator: "\n").filter {
            $0.utf8.contains(UInt8(ascii: "t")) && $0.contains("import ")
        }
        return Set(candidates.compactMap { $0.firstMatch(of: statement).map { String($0.1) } })
    }

    private enum Byte {
        static let newline = UInt8(ascii: "\n")
        static let slash = UInt8(ascii: "/")
        static let star = UInt8(ascii: "*")
        static let hash = UInt8(ascii: "#")
        static let quote = UInt8(ascii: "\"")
        static let backslash = UInt8(ascii: "\\")
        static let open = UInt8(ascii: "(")
        static let close = UInt8(ascii: ")")
    }

    private struct Reader {
        let bytes: [UInt8]
        var position = 0
        var code: [UInt8] = []
        var strings: [UInt8] = []
        var comments: [UInt8] = []
        var all: [UInt8] = []

        init(bytes: [UInt8]) {
            self.bytes = bytes
            code.reserveCapacity(bytes.count)
            all.reserveCapacity(bytes.count)
        }

        mutating func read() {
            while position < bytes.count {
                switch bytes[position] {
                case Byte.slash where at(1) == Byte.slash:
                    while position < bytes.count, bytes[position] != Byte.newline { readCommentByte() }
                case Byte.slash where at(1) == Byte.star:
                    readBlockComment()
                case Byte.quote, Byte.hash:
                    if let hashes = stringStart() { readString(hashes: hashes) } else { readCode() }
                default:
                    readCode()
                }
            }
        }

        private func at(_ offset: Int) -> UInt8 { position + offset < bytes.count ? bytes[position + offset] : 0 }

        private mutating func readCode() {
            let byte = bytes[position]
            if !appendNewline(byte) {
                code.append(byte)
                all.append(byte)
            }
            position += 1
        }

        /// Appends a line break to every part. Returns false for other bytes.
        private mutating func appendNewline(_ byte: UInt8) -> Bool {
            guard byte == Byte.newline else { return false }
            code.append(byte)
            strings.append(byte)
            comments.append(byte)
            all.append(byte)
            return true
        }

        private mutating func readCommentByte() {
            let byte = bytes[position]
            if !appendNewline(byte) { comments.append(byte) }
            position += 1
        }

        private mutating func readBlockComment() {
            var depth = 0
            repeat {
                if bytes[position] == Byte.slash, at(1) == Byte.star {
                    depth += 1
                    readCommentByte()
                } else if bytes[position] == Byte.star, at(1) == Byte.slash {
                    depth -= 1
                    readCommentByte()
                }
                if position < bytes.count { readCommentByte() }
            } while depth > 0 && position < bytes.count
        }

        /// Returns the number of `#` before a string that starts here; nil if none starts here.
        private func stringStart() -> Int? {
            var hashes = 0
            while at(hashes) == Byte.hash { hashes += 1 }
            return at(hashes) == Byte.quote ? hashes : nil
        }

        /// Returns true if a byte occurs `count` times in a row at an offset.
        private func repeats(_ byte: UInt8, _ count: Int, at offset: Int) -> Bool {
            (0..<count).allSatisfy { at(offset + $0) == byte }
        }

        private mutating func readString(hashes: Int) {
            let quotes = repeats(Byte.quote, 3, at: hashes) ? 3 : 1
            consume(hashes + quotes)
            var depth = 0
            while position < bytes.count {
                if depth > 0 {
                    if let inner = stringStart() {
                        readString(hashes: inner)
                        continue
                    }
                    if bytes[position] == Byte.open { depth += 1 }
                    if bytes[position] == Byte.close { depth -= 1 }
                    consume(1)
                } else if bytes[position] == Byte.backslash, repeats(Byte.hash, hashes, at: 1) {
                    if at(1 + hashes) == Byte.open { depth = 1 }
                    consume(2 + hashes)
                } else if repeats(Byte.quote, quotes, at: 0), repeats(Byte.hash, hashes, at: quotes) {
                    consume(quotes + hashes)
                    return
                } else {
                    if quotes == 1, bytes[position] == Byte.newline { return }
                    consume(1)
                }
            }
        }

        private mutating func consume(_ count: Int) {
            for _ in 0..<count where position < bytes.count {
                let byte = bytes[position]
                if !appendNewline(byte) {
                    strings.append(byte)
                    all.append(byte)
                }
                position += 1
            }
        }
    }
}
