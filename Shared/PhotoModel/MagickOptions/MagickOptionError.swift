/// The reason why options of ImageMagick's program `convert` are not accepted.
public struct MagickOptionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The position of the word at fault in the text, in characters from 1.
    public let position: Int
    /// The word at fault, shortened, without control characters.
    public let word: String
    /// The problem, and what is allowed.
    public let reason: String

    init(_ word: MagickWord, _ reason: String) {
        position = word.position
        self.word = Self.printable(word.text)
        self.reason = reason
    }

    public var description: String { "\"\(word)\" at character \(position) \(reason)" }

    private static func printable(_ text: String) -> String {
        let start = text.unicodeScalars.prefix(40).map { scalar in
            scalar.isASCII && scalar.value >= 0x20 && scalar.value != 0x7F
                ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
        }
        return start.joined() + (text.unicodeScalars.count > 40 ? "…" : "")
    }
}
