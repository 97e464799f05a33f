import PhotoModel

extension PredicateNode {
    /// True if a part of the condition cannot be tested by PostgreSQL: SQLite has functions for it from this program, and
    /// no text of PostgreSQL has a zero byte.
    func needsFunctions(_ table: PredicateTable) -> Bool {
        switch self {
        case .constant, .bits, .inside: false
        case .comparison(let key, _, let value): key == .isLocal || value.hasZeroByte
        case .between(let key, let low, let high): key == .isLocal || low.hasZeroByte || high.hasZeroByte
        case .isIn(let key, let values): key == .isLocal || values.contains(where: \.hasZeroByte)
        case .text(let key, let match): match.needsFunction(hasFolded: table.foldedColumn(key) != nil)
        case .any(let key, .matches(let match)): match.needsFunction(hasFolded: key == .keywords)
        case .any(_, .isIn(let texts)): texts.contains { $0.utf8.contains(0) }
        case .near: true
        case .and(let operands), .or(let operands): operands.contains { $0.needsFunctions(table) }
        case .not(let operand): operand.needsFunctions(table)
        }
    }

    /// Returns a condition without such parts that everything passes that passes this one, and perhaps more.
    func candidates(_ table: PredicateTable) -> PredicateNode { weakened(true, table) }

    /// - Parameter isWider: true for a condition that more passes; false, below a NOT, for one that less passes
    private func weakened(_ isWider: Bool, _ table: PredicateTable) -> PredicateNode {
        guard needsFunctions(table) else { return self }
        return switch self {
        case .and(let operands): .and(operands.map { $0.weakened(isWider, table) })
        case .or(let operands): .or(operands.map { $0.weakened(isWider, table) })
        case .not(let operand): .not(operand.weakened(!isWider, table))
        case .near(let circle) where isWider: .inside(circle.boundingBox)
        default: .constant(isWider)
        }
    }
}

extension PredicateValue {
    fileprivate var hasZeroByte: Bool {
        if case .text(let text) = self { text.utf8.contains(0) } else { false }
    }
}

extension TextMatch {
    /// - Parameter hasFolded: true if there is a copy of the text that is folded for case and diacritics
    fileprivate func needsFunction(hasFolded: Bool) -> Bool {
        guard !pattern.utf8.contains(0), folding.isEmpty || folding == .caseAndDiacritics && hasFolded else {
            return true
        }
        return kind == .endsWith || kind == .like
    }
}
