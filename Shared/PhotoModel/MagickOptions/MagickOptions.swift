/// Options of ImageMagick's program `convert` that are translated to operations of the editor.
///
/// The text is parsed by a grammar of its own and by a table of the allowed options; no part of it reaches a shell or
/// ImageMagick. Options have the meaning that they have for `convert`: an option without an equivalent operation is
/// refused, and so is an order that the stages of the editor cannot keep.
public struct MagickOptions: Sendable, Hashable {
    /// The options as they were written.
    public let text: String

    /// The maximum length of the text in bytes.
    public static let maxBytes = 4096

    /// Parses options, and checks them for images of any size.
    ///
    /// - Throws: ``MagickOptionError`` with the word at fault, its position and what is allowed
    public init(_ text: String) throws(MagickOptionError) {
        guard text.utf8.count <= Self.maxBytes else {
            throw MagickOptionError(
                MagickWord(text: String(text.unicodeScalars.prefix(40).map(Character.init)), position: 1),
                "begins a text of \(text.utf8.count) bytes, and at most \(Self.maxBytes) are allowed"
            )
        }
        self.text = text
        let list = try Self.operations(text, .any)
        guard !list.isEmpty else {
            throw MagickOptionError(
                MagickWord(text: text, position: 1),
                "has no operator; allowed are \(Self.allowed.joined(separator: ", "))"
            )
        }
    }

    /// Returns the operations for an image.
    ///
    /// - Parameter size: the displayed size of the image before these operations, in pixels; nil if it is not known
    /// - Throws: ``MagickOptionError`` for options that are not possible at that size, or that need an unknown size
    public func operations(for size: (width: Int, height: Int)?) throws(MagickOptionError) -> [Adjustment] {
        try Self.operations(
            text,
            size.map { .known(width: $0.width, height: $0.height) }
                ?? .unknown(because: "the size of the image before it is not known")
        )
    }

    /// The options that are allowed, with their arguments.
    public static var allowed: [String] {
        MagickOperator.all.map { $0.usage.isEmpty ? $0.name : "\($0.name) \($0.usage)" }
    }

    private static func operations(_ text: String, _ size: MagickTranslation.Size) throws(MagickOptionError)
        -> [Adjustment]
    {
        var translation = MagickTranslation(size: size)
        var rest = try MagickWord.split(text)[...]
        while let word = rest.popFirst() {
            guard let known = MagickOperator.byName[word.text] else {
                let kind =
                    word.text.hasPrefix("-") || word.text.hasPrefix("+") ? "option" : "option; names of files are not"
                throw MagickOptionError(
                    word,
                    "is not an allowed \(kind); allowed are \(MagickOperator.all.map(\.name).joined(separator: ", "))"
                )
            }
            guard rest.count >= known.operandCount else {
                throw MagickOptionError(word, "needs an argument: \(known.usage)")
            }
            let operand = MagickOperand(option: word, words: Array(rest.prefix(known.operandCount)), usage: known.usage)
            rest = rest.dropFirst(known.operandCount)
            try known.apply(&translation, operand)
        }
        return translation.operations
    }
}
