import PhotoModel

/// A search for one keyword that the keyword indexes and counters can answer.
enum KeywordSearch: Hashable {
    /// Matches exactly this text.
    case text(String)
    /// Matches this text ignoring case and diacritics; the text is already folded.
    case folded(String)

    /// The counter of the visible assets with the keyword.
    var counter: String {
        switch self {
        case .text(let text): "keyword=" + text
        case .folded(let text): "keyword~" + text
        }
    }

    /// Returns true if a counter is that of a keyword.
    static func isCounter(_ name: String) -> Bool { name.hasPrefix("keyword=") || name.hasPrefix("keyword~") }

    /// The column that is compared.
    var column: String {
        switch self {
        case .text: "text"
        case .folded: "folded"
        }
    }

    var word: String {
        switch self {
        case .text(let text), .folded(let text): text
        }
    }

    /// The condition on the table `k` that yields each asset once.
    var distinctCondition: String {
        switch self {
        case .text: "k.repeats < 2"
        case .folded: "k.repeats = 0"
        }
    }
}

extension PredicateNode {
    /// The condition as a keyword search; nil if it is another condition.
    var keywordSearch: KeywordSearch? {
        let search: KeywordSearch? =
            switch self {
            case .any(.keywords, .isIn(let words)) where words.count == 1: words.first.map(KeywordSearch.text)
            case .any(.keywords, .matches(let match)) where match.kind == .equals && match.folding.isEmpty:
                .text(match.pattern)
            case .any(.keywords, .matches(let match))
            where match.kind == .equals && match.folding == .caseAndDiacritics:
                .folded(match.pattern)
            default: nil
            }
        // No stored text contains a zero byte, and SQLite ends a text at one.
        return search.flatMap { $0.word.utf8.contains(0) ? nil : $0 }
    }

    /// A keyword search that all results must match, and the remaining condition; nil if there is no such search.
    var splitKeywordSearch: (search: KeywordSearch, rest: PredicateNode?)? {
        if let keywordSearch { return (keywordSearch, nil) }
        guard case .and(var operands) = self else { return nil }
        for (index, operand) in operands.enumerated() {
            guard let search = operand.keywordSearch else { continue }
            operands.remove(at: index)
            return (search, operands.count == 1 ? operands[0] : .and(operands))
        }
        return nil
    }
}
