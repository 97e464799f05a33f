/// Swift source taken apart: code without comments and without the content of strings, the strings, and the comments.
///
/// Each part keeps the line breaks of the whole, so that line numbers fit. It knows line and nested block comments,
/// plain, multi-line and raw strings; an interpolation counts as part of its string.
struct SourceText {
    let lines: [Substring]
    let code: String
    let strings: String
    let comments: String
    /// Code and strings together.
    let withoutComments: String

    init(_ text: String) {
        var reader = Reader(characters: Array(text.unicodeScalars))
        reader.read()
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        code = String(String.UnicodeScalarView(reader.code))
        strings = String(String.UnicodeScalarView(reader.strings))
        comments = String(String.UnicodeScalarView(reader.comments))
        withoutComments = String(String.UnicodeScalarView(reader.all))
    }

    /// The numbers of the lines of a part that hold a pattern, counted from 1.
    static func lines(of part: String, holding pattern: some RegexComponent) -> [Int] {
        part.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
            .filter { $0.element.contains(pattern) }
            .map { $0.offset + 1 }
    }

    /// The modules that are imported.
    var imports: Set<String> {
        let statement =
            /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)?import\s+(?:(?:struct|class|enum|func|protocol|typealias|var|let|actor)\s+)?(\w+)/
        return Set(code.split(separator: "\n").compactMap { $0.firstMatch(of: statement).map { String($0.1) } })
    }

    private struct Reader {
        let characters: [Unicode.Scalar]
        var position = 0
        var code: [Unicode.Scalar] = []
        var strings: [Unicode.Scalar] = []
        var comments: [Unicode.Scalar] = []
        var all: [Unicode.Scalar] = []

        mutating func read() {
            while position < characters.count {
                if starts(with: "//") {
                    while position < characters.count, characters[position] != "\n" { comment() }
                } else if starts(with: "/*") {
                    readBlockComment()
                } else if let hashes = stringStart() {
                    readString(hashes: hashes)
                } else {
                    let scalar = characters[position]
                    if scalar == "\n" { strings.append(scalar); comments.append(scalar) }
                    code.append(scalar)
                    all.append(scalar)
                    position += 1
                }
            }
        }

        private func starts(with text: String, at offset: Int = 0) -> Bool {
            var index = position + offset
            for scalar in text.unicodeScalars {
                guard index < characters.count, characters[index] == scalar else { return false }
                index += 1
            }
            return true
        }

        private mutating func newline(_ scalar: Unicode.Scalar) -> Bool {
            guard scalar == "\n" else { return false }
            code.append(scalar)
            strings.append(scalar)
            comments.append(scalar)
            all.append(scalar)
            return true
        }

        private mutating func comment() {
            let scalar = characters[position]
            if !newline(scalar) { comments.append(scalar) }
            position += 1
        }

        private mutating func readBlockComment() {
            var depth = 0
            repeat {
                if starts(with: "/*") { depth += 1; comment() } else if starts(with: "*/") { depth -= 1; comment() }
                if position < characters.count { comment() }
            } while depth > 0 && position < characters.count
        }

        /// The number of `#` before a string that starts here; nil where none does.
        private func stringStart() -> Int? {
            var hashes = 0
            while position + hashes < characters.count, characters[position + hashes] == "#" { hashes += 1 }
            guard position + hashes < characters.count, characters[position + hashes] == "\"" else { return nil }
            return hashes
        }

        private mutating func readString(hashes: Int) {
            let fence = String(repeating: "#", count: hashes)
            let isMultiline = starts(with: "\"\"\"", at: hashes)
            let close = (isMultiline ? "\"\"\"" : "\"") + fence
            take(hashes + (isMultiline ? 3 : 1))
            var depth = 0
            while position < characters.count {
                if starts(with: "\\" + fence + "(") {
                    take(2 + hashes)
                    depth += 1
                } else if depth > 0 {
                    if let inner = stringStart() { readString(hashes: inner); continue }
                    if characters[position] == "(" { depth += 1 }
                    if characters[position] == ")" { depth -= 1 }
                    take(1)
                } else if starts(with: "\\" + fence) {
                    take(2 + hashes)
                } else if starts(with: close) {
                    take(close.unicodeScalars.count)
                    return
                } else {
                    if !isMultiline, characters[position] == "\n" { return }
                    take(1)
                }
            }
        }

        private mutating func take(_ count: Int) {
            for _ in 0..<count where position < characters.count {
                let scalar = characters[position]
                if !newline(scalar) {
                    strings.append(scalar)
                    all.append(scalar)
                }
                position += 1
            }
        }
    }
}
