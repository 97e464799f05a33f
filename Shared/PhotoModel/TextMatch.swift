/// A test on one text: NSPredicate's BEGINSWITH, CONTAINS, ENDSWITH, LIKE and `==[cd]`.
///
/// Text is compared as the UTF-8 bytes of its folded normal form C. An empty pattern is a prefix, a suffix and a
/// substring of every text.
public struct TextMatch: Sendable, Hashable {
    /// The kind of a test.
    public enum Kind: String, Sendable, CaseIterable {
        case equals = "=="
        case beginsWith
        case contains
        case endsWith
        /// `*` matches any sequence, `?` one Unicode scalar of the folded text, `\` quotes the next scalar.
        case like
    }

    /// The kind of the test.
    public let kind: Kind
    /// The pattern, already folded with the options, so that equal tests are equal values.
    public let pattern: String
    /// The differences that the test ignores.
    public let folding: TextFolding
    /// The parts of the pattern of LIKE between its `*`; none for the other kinds.
    private let pieces: [LikePiece]

    public init(_ kind: Kind, _ pattern: String, folding: TextFolding = []) {
        let pattern = folding.apply(pattern)
        self.kind = kind
        self.pattern = pattern
        self.folding = folding
        pieces = kind == .like ? LikePiece.pieces(of: pattern) : []
    }

    /// Returns true if a stored text matches.
    public func matches(_ text: String) -> Bool {
        // Stored text is already NFC: without folding there is nothing to do.
        matches(folded: folding.isEmpty ? text : folding.apply(text))
    }

    /// Returns true if a text that is already folded with ``folding``, for example by a folded column, matches.
    public func matches(folded text: String) -> Bool {
        switch kind {
        case .equals: text.utf8.elementsEqual(pattern.utf8)
        case .beginsWith: text.utf8.starts(with: pattern.utf8)
        case .endsWith: text.utf8.reversed().starts(with: pattern.utf8.reversed())
        case .contains: Self.contains(Array(text.utf8), Array(pattern.utf8))
        case .like: isLike(Array(text.unicodeScalars))
        }
    }

    /// Returns true if a text contains a pattern, in a time proportional to the lengths (Knuth, Morris and Pratt).
    private static func contains(_ text: [UInt8], _ pattern: [UInt8]) -> Bool {
        let prefixes = LinearSearch.prefixes(of: pattern)
        return LinearSearch.position(of: pattern, prefixes, in: text, text.indices, areEqual: { $0 == $1 }) != nil
    }

    /// Returns true if the first and the last piece match the ends of the text, and the others follow one another
    /// between them.
    private func isLike(_ text: [Unicode.Scalar]) -> Bool {
        guard let first = pieces.first, let last = pieces.last else { return text.isEmpty }
        guard pieces.count > 1 else { return text.count == first.count && first.matches(text, at: 0) }
        var (start, end) = (first.count, text.count - last.count)
        guard start <= end, first.matches(text, at: 0), last.matches(text, at: end) else { return false }
        for piece in pieces.dropFirst().dropLast() {
            guard let found = piece.position(in: text, start..<end) else { return false }
            start = found + piece.count
        }
        return true
    }

    /// The maximum number of steps of a test for each scalar of a text. The pieces of LIKE are searched for in parts of
    /// the text that do not overlap.
    var steps: Int { pieces.map(\.steps).max() ?? 1 }
}

/// A part of a pattern of LIKE between two `*`.
private struct LikePiece: Sendable, Hashable {
    /// Nil stands for `?`.
    private let scalars: [Unicode.Scalar?]
    /// The table of the linear search; nil for a piece with `?`, which is compared at every position.
    private let prefixes: [Int]?

    private init(_ scalars: [Unicode.Scalar?]) {
        self.scalars = scalars
        prefixes = scalars.contains(nil) ? nil : LinearSearch.prefixes(of: scalars)
    }

    static func pieces(of pattern: String) -> [LikePiece] {
        var pieces: [LikePiece] = []
        var piece: [Unicode.Scalar?] = []
        var scalars = pattern.unicodeScalars.makeIterator()
        while let scalar = scalars.next() {
            switch scalar {
            case "*":
                pieces.append(LikePiece(piece))
                piece = []
            case "?": piece.append(nil)
            case "\\":
                let quoted: Unicode.Scalar = scalars.next() ?? "\\"
                piece.append(quoted)
            default: piece.append(scalar)
            }
        }
        return pieces + [LikePiece(piece)]
    }

    var count: Int { scalars.count }

    /// The maximum number of steps of a search for each scalar of a text.
    var steps: Int { prefixes == nil ? count : 1 }

    /// Returns true if the text has the piece at a position, after which it has as many scalars.
    func matches(_ text: [Unicode.Scalar], at position: Int) -> Bool {
        scalars.indices.allSatisfy { scalars[$0] == nil || scalars[$0] == text[position + $0] }
    }

    /// Returns the first position of the piece in a part of a text; nil if it is not in it.
    func position(in text: [Unicode.Scalar], _ part: Range<Int>) -> Int? {
        if let prefixes {
            return LinearSearch.position(of: scalars, prefixes, in: text, part, areEqual: { $0 == $1 })
        }
        guard count <= part.count else { return nil }
        return (part.lowerBound...(part.upperBound - count)).first { matches(text, at: $0) }
    }
}

/// The search of Knuth, Morris and Pratt, which takes a time that is proportional to the lengths.
private enum LinearSearch {
    /// Returns for each element of a pattern the length of the longest shorter prefix that also ends there.
    static func prefixes<Element: Equatable>(of pattern: [Element]) -> [Int] {
        var prefixes = [Int](repeating: 0, count: pattern.count)
        var matched = 0
        for index in pattern.indices.dropFirst() {
            while matched > 0, pattern[matched] != pattern[index] { matched = prefixes[matched - 1] }
            if pattern[matched] == pattern[index] { matched += 1 }
            prefixes[index] = matched
        }
        return prefixes
    }

    /// Returns the first position of a pattern in a part of a text; nil if it is not in it.
    static func position<PatternElement, Element>(
        of pattern: [PatternElement],
        _ prefixes: [Int],
        in text: [Element],
        _ part: Range<Int>,
        areEqual: (PatternElement, Element) -> Bool
    ) -> Int? {
        guard !pattern.isEmpty else { return part.lowerBound }
        guard pattern.count <= part.count else { return nil }
        var matched = 0
        for index in part {
            while matched > 0, !areEqual(pattern[matched], text[index]) { matched = prefixes[matched - 1] }
            if areEqual(pattern[matched], text[index]) { matched += 1 }
            if matched == pattern.count { return index + 1 - matched }
        }
        return nil
    }
}
