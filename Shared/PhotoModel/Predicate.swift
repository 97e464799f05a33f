import JSONValue

/// A condition on entities of one class: checked, bounded and in normal form.
///
/// It is parsed from NSPredicate's text (``init(format:arguments:of:)``) or from a JSON tree (``init(json:of:)``),
/// evaluated in memory here and lowered to SQL by the catalog. Logic is two-valued: nil equals only nil, orderings and
/// text matches with nil are false, `!=` is the negation of `==` (so a missing value differs from every value), and NOT
/// is plain negation. Predicates that differ only in spelling, order or repetition of operands are equal.
public struct Predicate: Sendable, Hashable {
    /// The class to which the predicate applies.
    public let entityClass: PredicateClass
    /// The normalized tree.
    public let root: PredicateNode

    /// The maximum number of leaves and connectives.
    public static let maxNodes = 256
    /// The maximum depth of nested connectives.
    public static let maxDepth = 32
    /// The maximum length of a text in UTF-8 bytes.
    public static let maxTextBytes = 4096
    /// The maximum length of a LIKE pattern in Unicode scalars: a test takes as many steps as the product of its length
    /// and that of the text.
    public static let maxLikeScalars = 256
    /// The maximum number of values in all IN lists together.
    public static let maxListValues = 10_000

    /// Checks the limits and normalizes the tree.
    ///
    /// - Throws: `limit_exceeded`
    init(_ root: PredicateNode, of entityClass: PredicateClass) throws(PredicateError) {
        var nodes = 0
        var values = 0
        root.measure(&nodes, &values)
        guard nodes <= Self.maxNodes else {
            throw PredicateError(.limitExceeded, "the predicate has \(nodes) nodes, limit \(Self.maxNodes): split it")
        }
        guard values <= Self.maxListValues else {
            throw PredicateError(
                .limitExceeded,
                "the IN lists have \(values) values, at most \(Self.maxListValues) are allowed; split them"
            )
        }
        self.entityClass = entityClass
        self.root = root.normalized()
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
}
