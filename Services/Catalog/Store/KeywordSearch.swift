import PhotoModel

/// A search for one keyword, as the keywords' own indexes and counters answer it.
enum KeywordSearch: Hashable {
    /// Exactly this text.
    case text(String)
    /// This text without case and diacritics, folded already.
    case folded(String)

    /// The counter of the visible assets that have it.
    var counter: String {
        switch self {
        case .text(let text): "keyword=" + text
        case .folded(let text): "keyword~" + text
        }
    }

    /// The column that holds what is compared.
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

    /// Each asset once, of the keywords `k`.
    var onlyFirst: String {
        switch self {
        case .text: "k.repeats < 2"
        case .folded: "k.repeats = 0"
        }
    }
}

extension PredicateNode {
    /// The search that this condition is, where it is one.
    var keywordSearch: KeywordSearch? {
        let search: KeywordSearch? =
            switch self {
            case .anyKeyword(.isIn(let words)) where words.count == 1: words.first.map(KeywordSearch.text)
            case .anyKeyword(.matches(let match)) where match.kind == .equals && match.folding.isEmpty:
                .text(match.pattern)
            case .anyKeyword(.matches(let match))
            where match.kind == .equals && match.folding == .caseAndDiacritics:
                .folded(match.pattern)
            default: nil
            }
        // No stored text holds a zero byte, and SQLite's texts end at one.
        return search.flatMap { $0.word.utf8.contains(0) ? nil : $0 }
    }

    /// A search that everything must pass, and what is asked besides.
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
