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

    public let kind: Kind
    /// The pattern, already folded with the options, so that equal tests are equal values.
    public let pattern: String
    /// The differences that the test ignores.
    public let folding: TextFolding
    /// The parts of the pattern of LIKE; none for the other kinds.
    private let globs: [Glob]

    public init(_ kind: Kind, _ pattern: String, folding: TextFolding = []) {
        let pattern = folding.apply(pattern)
        self.kind = kind
        self.pattern = pattern
        self.folding = folding
        globs = kind == .like ? Self.globs(of: pattern) : []
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

    /// Searches in a time that is proportional to the lengths (Knuth, Morris and Pratt).
    private static func contains(_ text: [UInt8], _ pattern: [UInt8]) -> Bool {
        guard !pattern.isEmpty else { return true }
        guard text.count >= pattern.count else { return false }
        // For each byte of the pattern, the length of the longest shorter prefix that also ends there.
        var prefixes = [Int](repeating: 0, count: pattern.count)
        var matched = 0
        for index in 1..<pattern.count {
            while matched > 0, pattern[matched] != pattern[index] { matched = prefixes[matched - 1] }
            if pattern[matched] == pattern[index] { matched += 1 }
            prefixes[index] = matched
        }
        matched = 0
        for byte in text {
            while matched > 0, pattern[matched] != byte { matched = prefixes[matched - 1] }
            if pattern[matched] == byte { matched += 1 }
            if matched == pattern.count { return true }
        }
        return false
    }

    private enum Glob: Sendable, Hashable { case any, one, scalar(Unicode.Scalar) }

    private static func globs(of pattern: String) -> [Glob] {
        var globs: [Glob] = []
        var scalars = pattern.unicodeScalars.makeIterator()
        while let scalar = scalars.next() {
            switch scalar {
            case "*": globs.append(.any)
            case "?": globs.append(.one)
            case "\\": globs.append(.scalar(scalars.next() ?? "\\"))
            default: globs.append(.scalar(scalar))
            }
        }
        return globs
    }

    /// Scans text and pattern once. After a mismatch only the last `*` is extended by one scalar, so the time is
    /// bounded by the product of the lengths.
    private func isLike(_ text: [Unicode.Scalar]) -> Bool {
        var position = 0
        var glob = 0
        var retry: (glob: Int, position: Int)?
        while position < text.count {
            if glob < globs.count {
                switch globs[glob] {
                case .any:
                    glob += 1
                    retry = (glob, position)
                    continue
                case .one:
                    glob += 1
                    position += 1
                    continue
                case .scalar(let scalar) where scalar == text[position]:
                    glob += 1
                    position += 1
                    continue
                case .scalar: break
                }
            }
            guard let last = retry else { return false }
            retry = (last.glob, last.position + 1)
            glob = last.glob
            position = last.position + 1
        }
        return globs[glob...].allSatisfy { if case .any = $0 { true } else { false } }
    }
}
