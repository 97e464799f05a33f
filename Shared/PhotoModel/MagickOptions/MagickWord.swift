/// A word of a command line.
struct MagickWord: Sendable, Hashable {
    let text: String
    /// The position of its first character, from 1.
    let position: Int

    /// The maximum number of words of a text.
    static let maxCount = 256

    /// Splits a text into words, with quotes as in a shell. Characters with which a shell would expand something or run
    /// another program are refused, because the text would mean something else in a shell.
    ///
    /// - Throws: ``MagickOptionError`` for the first character that is not allowed, and for an open quote
    static func split(_ text: String) throws(MagickOptionError) -> [MagickWord] {
        var words: [MagickWord] = []
        var word: (text: String, position: Int)?
        var quote: (mark: Unicode.Scalar, position: Int)?
        var isEscaped = false
        for (index, scalar) in text.unicodeScalars.enumerated() {
            let position = index + 1
            func add(_ text: String, from start: Int) {
                word = ((word?.text ?? "") + text, word?.position ?? start)
            }
            if isEscaped {
                isEscaped = false
                // A backslash at the end of a line continues it.
                if scalar == "\n" { continue }
                try check(scalar, position)
                // Between quotes a backslash is kept before most characters.
                let isKept = quote != nil && !["\"", "\\", "$", "`"].contains(scalar)
                add((isKept ? "\\" : "") + String(scalar), from: position - 1)
                continue
            }
            if let open = quote?.mark {
                if scalar == open {
                    quote = nil
                } else if scalar == "\\", open == "\"" {
                    isEscaped = true
                } else {
                    try check(scalar, position)
                    if open == "\"" { try refuseExpansion(scalar, position) }
                    add(String(scalar), from: position)
                }
                continue
            }
            switch scalar {
            case " ", "\t", "\n", "\r":
                if let word { words.append(MagickWord(text: word.text, position: word.position)) }
                word = nil
            case "\\": isEscaped = true
            case "'", "\"":
                quote = (scalar, position)
                word = word ?? ("", position)
            default:
                try check(scalar, position)
                try refuseExpansion(scalar, position)
                add(String(scalar), from: position)
            }
            guard words.count <= maxCount else { break }
        }
        if let quote {
            throw MagickOptionError(
                MagickWord(text: String(quote.mark), position: quote.position),
                "opens a quote that is not closed"
            )
        }
        if let word { words.append(MagickWord(text: word.text, position: word.position)) }
        guard words.count <= maxCount else {
            throw MagickOptionError(words[maxCount], "is one word too many: at most \(maxCount) are allowed")
        }
        return words
    }

    private static func check(_ scalar: Unicode.Scalar, _ position: Int) throws(MagickOptionError) {
        guard scalar.isASCII, scalar.value >= 0x20, scalar.value != 0x7F else {
            throw MagickOptionError(
                MagickWord(text: String(scalar), position: position),
                "is not allowed: options have printable ASCII characters only"
            )
        }
    }

    private static func refuseExpansion(_ scalar: Unicode.Scalar, _ position: Int) throws(MagickOptionError) {
        guard ["$", "`", "|", "&", ";"].contains(scalar) else { return }
        throw MagickOptionError(
            MagickWord(text: String(scalar), position: position),
            "is not allowed: nothing is expanded, and no other program is run"
        )
    }
}
