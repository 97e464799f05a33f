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
    public let entityClass: PredicateClass
    /// The normalized tree.
    public let root: PredicateNode
    /// By key the steps of the tests of its texts.
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
    init(_ root: PredicateNode, of entityClass: PredicateClass) throws(PredicateError) {
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

    /// Returns about how many steps an evaluation takes at most. A step is a nanosecond or two.
    ///
    /// - Parameter sizes: by key the texts of the entity; only those that are tested count
    public func steps(for sizes: [PredicateKey: TextSize]) -> Int {
        textSteps.reduce(0) { sum, tests in sum + (sizes[tests.key].map { tests.value.steps(for: $0) } ?? 0) }
    }
}
