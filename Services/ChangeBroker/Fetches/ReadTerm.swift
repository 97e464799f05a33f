import PhotoModel

/// A necessary condition for membership in a fetch: an entity belongs to the fetch only if one of its terms is true for
/// the entity.
enum ReadTerm: Hashable, Sendable {
    case id(ObjectID)
    case member(of: ObjectID)
    case child(of: ObjectID)
    case burst(String)
    case smartAlbum(SmartAlbum)
    case moment(Moment)
    case keyword(String)
    case equal(PredicateKey, PredicateValue)
    /// A value in a closed range; integers are rounded to the nearest `Double`, which keeps their order.
    case range(PredicateKey, ClosedRange<Double>)

    /// A rank of the term by the estimated fraction of a library for which it is true; smaller is more selective.
    var breadth: Int {
        switch self {
        case .id: 0
        case .member, .child, .burst, .keyword, .moment: 1
        case .smartAlbum(let album): album == .userLibrary || album == .generic ? 6 : 4
        case .equal(let key, let value):
            switch key.type {
            case .flag: value == .integer(1) ? 4 : 6
            case .name, .bits: 5
            case .integer: 3
            default: value == .null ? 5 : 2
            }
        case .range(_, let range): range.lowerBound.isFinite && range.upperBound.isFinite ? 4 : 6
        }
    }
}

extension Fetch {
    /// Terms of which at least one is true for every entity of the fetch; nil if there are none.
    var readTerms: [ReadTerm]? {
        switch kind {
        case .assets(.ids(let list)), .collectionIDs(let list), .listIDs(let list): return list.ids.map(ReadTerm.id)
        case .assets(.collection(let collection)): return mostSelectiveTerms([.member(of: collection)])
        case .assets(.burst(let burst)): return mostSelectiveTerms([.burst(burst)])
        case .assets(.smartAlbum(let album)): return mostSelectiveTerms([.smartAlbum(album)])
        case .assets(.moment(let moment)): return mostSelectiveTerms([.moment(moment)])
        case .children(let list): return [.child(of: list)]
        case .assets(.library), .assets(.below): return mostSelectiveTerms(nil)
        // A fetch of a transient collection cannot be observed.
        case .collections, .lists, .assets(.transient), .collectionsContaining, .listsContaining: return nil
        }
    }

    /// Returns the most selective terms: those of the source, of the media type or of the predicate.
    private func mostSelectiveTerms(_ source: [ReadTerm]?) -> [ReadTerm]? {
        let mediaTerms = mediaType.map { [ReadTerm.equal(.mediaType, .integer(Int64($0.number)))] }
        return ReadTerm.mostSelective([source, mediaTerms, predicate?.root.readTerms].compactMap { $0 })
    }
}

extension ReadTerm {
    /// The maximum number of terms of a disjunction; above it the fetch is not indexed by them.
    static let maxTerms = 10_000

    fileprivate static func mostSelective(_ choices: [[ReadTerm]]) -> [ReadTerm]? {
        func cost(_ terms: [ReadTerm]) -> Int { (terms.map(\.breadth).max() ?? 0) * 100_000 + terms.count }
        return choices.min { cost($0) < cost($1) }
    }
}

extension PredicateNode {
    /// Terms of which at least one is true for every entity that matches; nil if there are none.
    var readTerms: [ReadTerm]? {
        switch self {
        case .constant(false): return []
        case .comparison(.localIdentifier, .equal, .text(let id)): return ObjectID(id).map { [.id($0)] }
        case .comparison(let key, .equal, let value): return [.equal(key, value)]
        case .isIn(let key, let values): return values.map { .equal(key, $0) }
        case .comparison(let key, let relation, let value) where relation.isOrdering:
            guard let number = value.rounded else { return nil }
            switch relation {
            case .less, .lessOrEqual: return [.range(key, -.infinity...number)]
            default: return [.range(key, number ... .infinity)]
            }
        case .between(let key, let lower, let upper):
            guard let first = lower.rounded, let last = upper.rounded, first <= last else { return nil }
            return [.range(key, first...last)]
        case .any(.keywords, .isIn(let words)): return words.map(ReadTerm.keyword)
        case .any(.keywords, .matches(let match)):
            return match.kind == .equals && match.folding.isEmpty ? [.keyword(match.pattern)] : nil
        case .inside(let box): return [.range(.latitude, box.south...box.north)]
        case .near(let circle): return PredicateNode.inside(circle.boundingBox).readTerms
        case .and(let operands): return ReadTerm.mostSelective(Self.joined(operands.compactMap(\.readTerms)))
        case .or(let operands):
            var terms: [ReadTerm] = []
            for operand in operands {
                guard let more = operand.readTerms else { return nil }
                terms += more
            }
            return terms.count <= ReadTerm.maxTerms ? terms : nil
        case .constant, .comparison, .text, .bits, .any, .not: return nil
        }
    }

    /// Replaces the ranges of each key by their intersection.
    private static func joined(_ choices: [[ReadTerm]]) -> [[ReadTerm]] {
        var ranges: [PredicateKey: ClosedRange<Double>] = [:]
        var others: [[ReadTerm]] = []
        for choice in choices {
            guard choice.count == 1, case .range(let key, let range) = choice[0] else {
                others.append(choice)
                continue
            }
            let known = ranges[key] ?? -.infinity ... .infinity
            let lower = max(known.lowerBound, range.lowerBound)
            let upper = min(known.upperBound, range.upperBound)
            // The bounds contradict each other, so no entity matches.
            guard lower <= upper else { return [[]] }
            ranges[key] = lower...upper
        }
        return others + ranges.map { [.range($0, $1)] }
    }
}

extension PredicateValue {
    /// The number as it is compared in ranges.
    var rounded: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        case .null, .text: nil
        }
    }
}
