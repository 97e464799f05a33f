import PhotoModel

/// What a fetch reads of an entity, as far as it narrows the choice: an entity belongs to the fetch only where one of
/// its terms is true of it.
enum ReadTerm: Hashable, Sendable {
    case id(ObjectID)
    case member(of: ObjectID)
    case child(of: ObjectID)
    case burst(String)
    case smartAlbum(SmartAlbum)
    case moment(Moment)
    case keyword(String)
    case equal(PredicateKey, PredicateValue)
    /// Values from one to another; whole numbers are rounded to the nearest `Double`, which keeps their order.
    case range(PredicateKey, ClosedRange<Double>)

    /// Smaller is more telling: how much of a library the term is expected to be true of.
    var breadth: Int {
        switch self {
        case .id: 0
        case .member, .child, .burst, .keyword, .moment: 1
        case .smartAlbum(let album): album == .userLibrary ? 6 : 4
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
    /// Terms one of which is true of every entity of the fetch; nil where there are none that are worth keeping.
    var readTerms: [ReadTerm]? {
        switch kind {
        case .assets(.ids(let list)), .collectionIDs(let list), .listIDs(let list): return list.ids.map(ReadTerm.id)
        case .assets(.collection(let collection)): return narrower([.member(of: collection)])
        case .assets(.burst(let burst)): return narrower([.burst(burst)])
        case .assets(.smartAlbum(let album)): return narrower([.smartAlbum(album)])
        case .assets(.moment(let moment)): return narrower([.moment(moment)])
        case .children(let list): return [.child(of: list)]
        case .assets(.library): return narrower(nil)
        // The last four are not observed.
        case .collections, .lists, .assets(.below), .assets(.transient), .collectionsContaining, .listsContaining:
            return nil
        }
    }

    /// The most telling of what the source, the medium and the predicate say.
    private func narrower(_ source: [ReadTerm]?) -> [ReadTerm]? {
        let medium = mediaType.map { [ReadTerm.equal(.mediaType, .integer(Int64($0.number)))] }
        return ReadTerm.best([source, medium, predicate?.root.readTerms].compactMap { $0 })
    }
}

extension ReadTerm {
    /// More terms than these of one fetch are not kept.
    static let maxTerms = 10_000

    fileprivate static func best(_ choices: [[ReadTerm]]) -> [ReadTerm]? {
        func cost(_ terms: [ReadTerm]) -> Int { (terms.map(\.breadth).max() ?? 0) * 100_000 + terms.count }
        return choices.min { cost($0) < cost($1) }
    }
}

extension PredicateNode {
    /// Terms one of which is true of everything that passes; nil where that cannot be said.
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
        case .anyKeyword(.isIn(let words)): return words.map(ReadTerm.keyword)
        case .anyKeyword(.matches(let match)):
            return match.kind == .equals && match.folding.isEmpty ? [.keyword(match.pattern)] : nil
        case .inside(let box): return [.range(.latitude, box.south...box.north)]
        case .near(let circle): return PredicateNode.inside(circle.boundingBox).readTerms
        case .and(let operands): return ReadTerm.best(Self.joined(operands.compactMap(\.readTerms)))
        case .or(let operands):
            var terms: [ReadTerm] = []
            for operand in operands {
                guard let more = operand.readTerms else { return nil }
                terms += more
            }
            return terms.count <= ReadTerm.maxTerms ? terms : nil
        case .constant, .comparison, .text, .bits, .not: return nil
        }
    }

    /// Two half-open ranges of one key are one closed range.
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
            // Contradictory bounds: nothing passes, whatever is looked at.
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
