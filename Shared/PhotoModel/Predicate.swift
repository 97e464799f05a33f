import JSONValue

/// A condition on entities of one class: checked, bounded and in normal form.
///
/// It is parsed from NSPredicate's text (``init(format:arguments:of:)``) or from a JSON tree (``init(json:of:)``),
/// evaluated in memory here and lowered to SQL by the catalog. Logic is two-valued: nil equals only nil, orderings and
/// text matches with nil are false, `!=` is the negation of `==` (so a missing value differs from every value), and NOT
/// is plain negation. Predicates that differ only in spelling, order or repetition of operands are equal.
public struct Predicate: Sendable, Hashable {
    /// The unit of durations that a text or its arguments give as a number without a unit.
    public enum DurationUnit: String, Sendable {
        /// The unit of the wire.
        case microseconds
        /// The unit of PhotoKit's `duration`.
        case seconds
    }

    /// The class to which the predicate applies.
    public let entityClass: EntityClass
    /// The normalized tree.
    public let root: PredicateNode
    /// The steps that tests of the texts of each key take.
    private let textSteps: [PredicateKey: TextSteps]

    /// The maximum number of leaves and connectives.
    public static let maxNodes = 256
    /// The maximum depth of nested connectives.
    public static let maxDepth = 32
    /// The maximum length of a text in UTF-8 bytes.
    public static let maxTextBytes = 4096
    /// The maximum length of a LIKE pattern in Unicode scalars: a test of a pattern with `?` takes as many steps as the
    /// product of its length and that of the text.
    public static let maxLikeScalars = 256
    /// The maximum length of all LIKE patterns together in Unicode scalars, which bounds the time of one evaluation.
    public static let maxTotalLikeScalars = 1024
    /// The maximum number of values in all IN lists together.
    public static let maxListValues = 10_000

    /// Checks the limits and normalizes the tree.
    ///
    /// - Throws: `limit_exceeded`
    init(_ root: PredicateNode, of entityClass: EntityClass) throws(PredicateError) {
        var size = PredicateSize()
        root.measure(&size)
        guard size.nodes <= Self.maxNodes else {
            throw PredicateError(
                .limitExceeded,
                "the predicate has \(size.nodes) nodes, limit \(Self.maxNodes): split it"
            )
        }
        guard size.values <= Self.maxListValues else {
            throw PredicateError(
                .limitExceeded,
                "the IN lists have \(size.values) values, at most \(Self.maxListValues) are allowed; split them"
            )
        }
        guard size.likeScalars <= Self.maxTotalLikeScalars else {
            throw PredicateError(
                .limitExceeded,
                "the LIKE patterns have \(size.likeScalars) characters together, limit \(Self.maxTotalLikeScalars): "
                    + "use BEGINSWITH, CONTAINS or ENDSWITH, or split the predicate"
            )
        }
        self.entityClass = entityClass
        self.root = root.normalized()
        var textSteps: [PredicateKey: TextSteps] = [:]
        self.root.addTextSteps(to: &textSteps)
        self.textSteps = textSteps
        // Both notations are measured as the canonical tree, which services send to each other.
        let depth = self.root.depth
        guard depth <= Self.maxDepth else {
            throw PredicateError(
                .limitExceeded,
                "the predicate is \(depth) levels deep, limit \(Self.maxDepth): nest fewer AND, OR and NOT"
            )
        }
    }

    /// Returns true if an entity matches.
    public func evaluate(_ subject: some PredicateSubject) -> Bool { root.evaluate(subject) }

    /// True if there are tests of texts, whose time grows with the texts.
    public var testsTexts: Bool { !textSteps.isEmpty }

    /// Returns the approximate maximum number of steps of an evaluation. A step takes one or two nanoseconds.
    ///
    /// - Parameter sizes: the texts of the entity, by key; only those that are tested count
    public func steps(for sizes: [PredicateKey: TextSize]) -> Int {
        textSteps.reduce(0) { sum, tests in sum + (sizes[tests.key].map { tests.value.steps(for: $0) } ?? 0) }
    }
}

/// A node of a predicate tree.
///
/// Values have been checked against the key: in a `comparison` the value of a date is an integer, that of a text a
/// text, or either is null.
public indirect enum PredicateNode: Sendable, Hashable {
    /// A comparison operator.
    public enum Relation: String, Sendable, CaseIterable {
        case equal = "=="
        case notEqual = "!="
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="

        /// True for `<`, `<=`, `>` and `>=`.
        public var isOrdering: Bool { self != .equal && self != .notEqual }
    }

    /// A test that is true if one of the texts of a list passes it.
    public enum ListTest: Sendable, Hashable {
        case isIn([String])
        case matches(TextMatch)
    }

    case constant(Bool)
    case comparison(PredicateKey, Relation, PredicateValue)
    /// Lower and upper bound, both inclusive; neither is null.
    case between(PredicateKey, PredicateValue, PredicateValue)
    /// Null in the list matches a missing value.
    case isIn(PredicateKey, [PredicateValue])
    case text(PredicateKey, TextMatch)
    /// `(key & mask) == value`, or `!=` if `isEqual` is false.
    case bits(PredicateKey, mask: Int64, isEqual: Bool, value: Int64)
    case any(PredicateKey, ListTest)
    case near(GeoCircle)
    case inside(GeoBox)
    case and([PredicateNode])
    case or([PredicateNode])
    case not(PredicateNode)
}

/// The sizes of a predicate that have limits.
struct PredicateSize {
    var nodes = 0
    /// The values of all IN lists.
    var values = 0
    /// The scalars of all LIKE patterns.
    var likeScalars = 0
}

extension PredicateNode {
    func measure(_ size: inout PredicateSize) {
        size.nodes += 1
        switch self {
        case .and(let operands), .or(let operands): for operand in operands { operand.measure(&size) }
        case .not(let operand): operand.measure(&size)
        case .isIn(_, let list): size.values += list.count
        case .any(_, .isIn(let list)): size.values += list.count
        case .text(_, let match), .any(_, .matches(let match)):
            if match.kind == .like { size.likeScalars += match.pattern.unicodeScalars.count }
        default: break
        }
    }

    /// The number of connectives around the innermost condition.
    var depth: Int {
        switch self {
        case .and(let operands), .or(let operands): (operands.map(\.depth).max() ?? 0) + 1
        case .not(let operand): operand.depth + 1
        default: 0
        }
    }
}

extension PredicateNode {
    /// Returns true if a condition is on the key.
    func mentions(_ mentioned: PredicateKey) -> Bool {
        switch self {
        case .constant, .near, .inside: false
        case .comparison(let key, _, _), .between(let key, _, _), .isIn(let key, _), .text(let key, _),
            .bits(let key, _, _, _), .any(let key, _):
            key == mentioned
        case .and(let operands), .or(let operands): operands.contains { $0.mentions(mentioned) }
        case .not(let operand): operand.mentions(mentioned)
        }
    }
}

extension PredicateNode {
    func evaluate(_ subject: some PredicateSubject) -> Bool {
        var texts = FoldedTexts()
        return evaluate(subject, &texts)
    }

    private func evaluate(_ subject: some PredicateSubject, _ texts: inout FoldedTexts) -> Bool {
        switch self {
        case .constant(let truth): return truth
        case .comparison(let key, let relation, let value):
            return Self.compare(subject.value(of: key), relation, value)
        case .between(let key, let lower, let upper):
            let value = subject.value(of: key)
            return value.isBefore(lower) == false && upper.isBefore(value) == false
        case .isIn(let key, let list): return list.contains(subject.value(of: key))
        case .text(let key, let match):
            guard case .text(let text) = subject.value(of: key) else { return false }
            return match.folding.isEmpty ? match.matches(folded: text) : texts.containMatch(key, match) { [text] }
        case .bits(let key, let mask, let isEqual, let value):
            guard case .integer(let bits) = subject.value(of: key) else { return !isEqual }
            return (bits & mask == value) == isEqual
        case .any(let key, .isIn(let list)): return Self.contains(subject.texts(of: key), oneOf: list)
        case .any(let key, .matches(let match)): return texts.containMatch(key, match) { subject.texts(of: key) }
        case .near(let circle):
            guard let location = subject.location else { return false }
            return circle.contains(latitude: location.latitude, longitude: location.longitude)
        case .inside(let box):
            guard let location = subject.location else { return false }
            return box.contains(latitude: location.latitude, longitude: location.longitude)
        case .and(let operands): return operands.allSatisfy { $0.evaluate(subject, &texts) }
        case .or(let operands): return operands.contains { $0.evaluate(subject, &texts) }
        case .not(let operand): return !operand.evaluate(subject, &texts)
        }
    }

    /// Returns true if one of the words is in a list.
    ///
    /// - Parameter list: sorted by bytes, as by ``normalized()``
    private static func contains(_ words: [String], oneOf list: [String]) -> Bool {
        words.contains { word in
            var (low, high) = (0, list.count)
            while low < high {
                let middle = (low + high) / 2
                if list[middle].utf8.lexicographicallyPrecedes(word.utf8) { low = middle + 1 } else { high = middle }
            }
            return low < list.count && list[low].utf8.elementsEqual(word.utf8)
        }
    }

    private static func compare(_ left: PredicateValue, _ relation: Relation, _ right: PredicateValue) -> Bool {
        switch relation {
        case .equal: left == right
        case .notEqual: left != right
        case .less: left.isBefore(right) == true
        case .lessOrEqual: right.isBefore(left) == false
        case .greater: right.isBefore(left) == true
        case .greaterOrEqual: left.isBefore(right) == false
        }
    }
}

/// The texts of one entity as the tests of a predicate compare them: a text is folded once for all tests, because
/// folding takes far longer than a test.
private struct FoldedTexts {
    private struct Form: Hashable {
        let key: PredicateKey
        let folding: TextFolding
    }

    private var forms: [Form: [String]] = [:]

    /// Returns true if one of the texts of a key passes a test.
    ///
    /// - Parameter read: returns the texts as they are stored, in normal form C
    mutating func containMatch(_ key: PredicateKey, _ match: TextMatch, _ read: () -> [String]) -> Bool {
        if match.folding.isEmpty { return read().contains { match.matches(folded: $0) } }
        let form = Form(key: key, folding: match.folding)
        if let texts = forms[form] { return texts.contains { match.matches(folded: $0) } }
        let texts = read().map { match.folding.apply($0) }
        forms[form] = texts
        return texts.contains { match.matches(folded: $0) }
    }
}

extension PredicateNode {
    /// Returns the same condition with operands flattened, sorted by their bytes and deduplicated, constants folded,
    /// and negations moved into equalities.
    func normalized() -> PredicateNode {
        switch self {
        case .comparison(_, let relation, .null) where relation.isOrdering: return .constant(false)
        case .comparison(let key, .notEqual, .integer(let flag)) where key.type == .flag:
            // A flag is never null.
            return .comparison(key, .equal, .integer(1 - flag))
        case .between(let key, let lower, let upper):
            if lower == .null || upper == .null || upper.isBefore(lower) == true { return .constant(false) }
            return lower == upper ? .comparison(key, .equal, lower) : self
        case .isIn(let key, let list):
            let values = Self.ordered(Set(list))
            guard let first = values.first else { return .constant(false) }
            return values.count == 1 ? .comparison(key, .equal, first) : .isIn(key, values)
        case .text(let key, let match) where match.kind == .equals && match.folding.isEmpty:
            return .comparison(key, .equal, .text(match.pattern))
        case .bits(let key, let mask, let isEqual, let value):
            if value & ~mask != 0 { return .constant(!isEqual) }
            return .bits(key, mask: mask, isEqual: isEqual, value: value)
        case .any(let key, .isIn(let list)):
            let words = Set(list).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            guard let first = words.first else { return .constant(false) }
            return .any(key, words.count == 1 ? .matches(TextMatch(.equals, first)) : .isIn(words))
        case .and(let operands): return Self.joined(operands, neutral: true)
        case .or(let operands): return Self.joined(operands, neutral: false)
        case .not(let operand): return operand.normalized().negated()
        default: return self
        }
    }

    private func negated() -> PredicateNode {
        switch self {
        case .constant(let truth): .constant(!truth)
        case .not(let operand): operand
        case .comparison(let key, .equal, let value): Self.comparison(key, .notEqual, value).normalized()
        case .comparison(let key, .notEqual, let value): .comparison(key, .equal, value)
        case .bits(let key, let mask, let isEqual, let value):
            .bits(key, mask: mask, isEqual: !isEqual, value: value)
        default: .not(self)
        }
    }

    private static func joined(_ operands: [PredicateNode], neutral: Bool) -> PredicateNode {
        var flat: Set<PredicateNode> = []
        for operand in operands.map({ $0.normalized() }) {
            switch operand {
            case .constant(neutral): continue
            case .constant: return .constant(!neutral)
            case .and(let inner) where neutral: flat.formUnion(inner)
            case .or(let inner) where !neutral: flat.formUnion(inner)
            default: flat.insert(operand)
            }
        }
        guard let first = flat.first else { return .constant(neutral) }
        guard flat.count > 1 else { return first }
        let sorted = flat.map { (node: $0, bytes: $0.json.bytes) }
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
            .map(\.node)
        return neutral ? .and(sorted) : .or(sorted)
    }

    /// Returns the values in order: null first, then by number or bytes. All values of one key are of the same kind.
    private static func ordered(_ values: Set<PredicateValue>) -> [PredicateValue] {
        values.sorted { left, right in left.isBefore(right) ?? (left == .null && right != .null) }
    }
}
