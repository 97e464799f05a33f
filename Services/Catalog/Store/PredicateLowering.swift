import PhotoModel

/// Translates a predicate to SQL on one table, with the same result as ``Predicate/evaluate(_:)`` for each row.
struct PredicateLowering {
    let table: PredicateTable
    /// True if rows are scanned in the order of another index: conditions are written so that SQLite does not choose an
    /// index for them.
    var isRowByRow = false
    /// True if that index has only visible assets, whose rows need not be read.
    var isBySortOrder = false
    /// True if the rows are those of a limited grant: keywords are looked up for each of them, never by an index that
    /// has those of other assets.
    var isListed = false
    var dialect = SQLDialect.sqlite

    func lower(_ node: PredicateNode) -> SQLFragment { lower(node, isNegated: false) }

    /// Translates a node.
    ///
    /// - Parameter isNegated: true below a NOT, where the result NULL must not occur: the test of a missing value is
    ///   false. Elsewhere NULL counts as false anyway, and the plain form lets SQLite use an index.
    private func lower(_ node: PredicateNode, isNegated: Bool) -> SQLFragment {
        // The text must be identical to that of the partial index.
        if table == .asset, let album = node.smartAlbum {
            let condition =
                isBySortOrder
                ? DerivedSchema.scanCondition(album) : DerivedSchema.condition(album, prefix: isRowByRow ? "+a." : "a.")
            return SQLFragment("(" + condition + ")")
        }
        switch node {
        case .constant(let truth): return SQLFragment(truth ? "TRUE" : "FALSE")
        case .comparison(let key, let relation, let value):
            let column = table.column(key)
            switch relation {
            case .equal where dialect == .postgresql && value != .null:
                // PostgreSQL uses an index for this test only.
                return falseIfMissing("\(column) = " + .bound(value), column, key, isNegated)
            case .equal:
                // The plus keeps SQLite from using an index. PostgreSQL has none for text.
                let plus = isRowByRow && dialect == .sqlite ? "+" : ""
                return "(\(plus)\(column) IS " + .bound(value) + ")"
            case .notEqual: return "(\(column) IS NOT " + .bound(value) + ")"
            default:
                return falseIfMissing("\(column) \(relation.rawValue) " + .bound(value), column, key, isNegated)
            }
        case .between(let key, let lower, let upper):
            let column = table.column(key)
            return falseIfMissing(
                "\(column) BETWEEN " + .bound(lower) + " AND " + .bound(upper),
                column,
                key,
                isNegated
            )
        case .isIn(let key, let list):
            let column = table.column(key)
            let values = list.filter { $0 != .null }.map(SQLFragment.bound)
            let test = falseIfMissing("\(column) IN (" + .joined(values, ", ") + ")", column, key, isNegated)
            return list.contains(.null) ? "(" + test + " OR \(column) IS NULL)" : test
        case .text(let key, let match):
            return text(match, column: table.column(key), folded: table.foldedColumn(key))
        case .bits(let key, let mask, let isEqual, let value):
            return SQLFragment(
                "((\(table.column(key)) & ?) \(isEqual ? "=" : "<>") ?)",
                [SQLValue(mask), SQLValue(value)]
            )
        case .any(.keywords, _) where isRowByRow && node.keywordSearch != nil:
            guard let search = node.keywordSearch else { return SQLFragment("FALSE") }
            return "(EXISTS (SELECT 1 FROM keyword k WHERE k.asset = a.row AND +k.\(search.column) = "
                + .bound(search.word) + "))"
        case .any(.keywords, .isIn(let words)) where isListed:
            return keywordCondition("+k.text IN (" + .joined(words.map(SQLFragment.bound), ", ") + ")")
        case .any(.keywords, .matches(let match)) where isListed:
            return keywordCondition(text(match, column: "+k.text", folded: "+k.folded"))
        case .any(.keywords, .isIn(let words)):
            return "(a.row IN (SELECT asset FROM keyword WHERE text IN ("
                + .joined(words.map(SQLFragment.bound), ", ") + ")))"
        case .any(.keywords, .matches(let match)):
            return "(a.row IN (SELECT asset FROM keyword WHERE " + text(match, column: "text", folded: "folded") + "))"
        case .any(let key, .isIn(let words)):
            return MetadataStore.any(key) { "\($0) IN (" + .joined(words.map(SQLFragment.bound), ", ") + ")" }
        case .any(let key, .matches(let match)):
            return MetadataStore.any(key) { text(match, column: $0, folded: nil, isIndexed: false) }
        case .near(let circle): return near(circle)
        case .inside(let box): return inside(box)
        case .and(let operands): return "(" + .joined(operands.map { lower($0, isNegated: isNegated) }, " AND ") + ")"
        case .or(let operands): return "(" + .joined(operands.map { lower($0, isNegated: isNegated) }, " OR ") + ")"
        case .not(let operand): return "(NOT " + lower(operand, isNegated: true) + ")"
        }
    }

    /// Returns the condition that a keyword of the asset passes a test.
    private func keywordCondition(_ test: SQLFragment) -> SQLFragment {
        // PostgreSQL tests a query with an offset for each asset. It may begin with the index of keywords otherwise.
        let end = dialect == .postgresql ? " OFFSET 0))" : "))"
        return "(EXISTS (SELECT 1 FROM keyword k WHERE k.asset = a.row AND " + test + end
    }

    private func falseIfMissing(
        _ test: SQLFragment,
        _ column: String,
        _ key: PredicateKey,
        _ isNegated: Bool
    ) -> SQLFragment {
        guard isNegated, key.isOptional else { return "(" + test + ")" }
        return "(\(column) IS NOT NULL AND " + test + ")"
    }

    /// Returns a text test that yields 0 or 1, never NULL.
    ///
    /// - Parameter isIndexed: false for a text within a JSON list, which has no index and not the collation of columns
    private func text(
        _ match: TextMatch,
        column: String,
        folded: String?,
        isIndexed: Bool = true
    ) -> SQLFragment {
        if match.folding.isEmpty { return text(match, in: column, isIndexed: isIndexed) }
        // The pattern of a match is already folded, and so is the column.
        if match.folding == .caseAndDiacritics, let folded {
            return text(TextMatch(match.kind, match.pattern), in: folded)
        }
        return function(match, column)
    }

    private func text(_ match: TextMatch, in column: String, isIndexed: Bool = true) -> SQLFragment {
        let pattern = SQLFragment.bound(match.pattern)
        switch match.kind {
        case .equals where dialect == .postgresql:
            return "(\(column) IS NOT NULL AND \(column) = " + pattern + ")"
        case .equals: return "(\(column) IS " + pattern + ")"
        case .contains: return "(\(column) IS NOT NULL AND instr(\(column), " + pattern + ") > 0)"
        case .beginsWith:
            let length = SQLValue(match.pattern.unicodeScalars.count)
            // A range of the index. In a collation other than that of bytes, a text may sort before its own prefix.
            let range = isIndexed ? " AND \(column) >= " + pattern : SQLFragment("")
            return "(\(column) IS NOT NULL" + range
                + SQLFragment(" AND substr(\(column), 1, ?) = ", [length]) + pattern + ")"
        case .endsWith, .like: return function(match, column)
        }
    }

    private func function(_ match: TextMatch, _ column: String) -> SQLFragment {
        // No stored text contains a zero byte.
        guard !match.pattern.utf8.contains(0) else { return SQLFragment("FALSE") }
        let test = SQLFragment(
            "safelight_match(\(column), ?, ?, ",
            [SQLValue(match.kind.rawValue), SQLValue(match.folding.letters)]
        )
        return "(" + test + .bound(match.pattern) + "))"
    }

    private func near(_ circle: GeoCircle) -> SQLFragment {
        "(" + inside(circle.boundingBox)
            + SQLFragment(
                " AND safelight_distance(a.latitude, a.longitude, ?, ?) <= ?)",
                [SQLValue(circle.latitude), SQLValue(circle.longitude), SQLValue(circle.radius)]
            )
    }

    private func inside(_ box: GeoBox) -> SQLFragment {
        let joint = box.crossesAntimeridian ? "OR" : "AND"
        return SQLFragment(
            "(a.latitude IS NOT NULL AND a.latitude BETWEEN ? AND ? AND (a.longitude >= ? \(joint) a.longitude <= ?))",
            [box.south, box.north, box.west, box.east].map { SQLValue($0) }
        )
    }
}

// MARK: - Candidates for a database without the functions

extension PredicateNode {
    /// True if PostgreSQL cannot test a part of the condition: for SQLite this program defines functions, and no text
    /// of PostgreSQL has a zero byte.
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

    /// Returns a condition without such parts. Every entity that satisfies this condition satisfies it too, and perhaps
    /// others do.
    func candidates(_ table: PredicateTable) -> PredicateNode { weakened(true, table) }

    /// - Parameter isWider: true for a condition that more entities satisfy; false, below a NOT, for one that fewer
    ///   satisfy
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
