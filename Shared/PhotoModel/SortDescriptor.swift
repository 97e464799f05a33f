import JSONValue

/// One key of a sort order (S-21). Entities without a value sort last in both directions.
public struct SortDescriptor: Sendable, Hashable {
    /// The key.
    public let key: PredicateKey
    /// True if the smallest value is first.
    public let ascending: Bool

    /// The maximum number of keys of one order.
    public static let maxCount = 16

    /// Creates a descriptor from the name of a key of a class.
    ///
    /// - Throws: `unsupported_sort_key` for a name that the class does not have, for an identifier and for a list
    public init(_ name: String, ascending: Bool = true, of entityClass: EntityClass) throws(PredicateError) {
        guard let key = PredicateKey(named: name, of: entityClass), key.isSortable else {
            throw PredicateError(
                .unsupportedSortKey,
                "\(entityClass.rawValue) cannot be sorted by \"\(name.prefix(100))\"",
                key: String(name.prefix(100)),
                entityClass: entityClass,
                allowed: entityClass.keys.filter(\.isSortable).map(\.name)
            )
        }
        self.key = key
        self.ascending = ascending
    }

    init(key: PredicateKey, ascending: Bool) {
        self.key = key
        self.ascending = ascending
    }

    /// Returns true if one entity precedes another by this key alone; `nil` if they are equal.
    public func precedes(_ left: some PredicateSubject, _ right: some PredicateSubject) -> Bool? {
        let (first, second) = (left.value(of: key), right.value(of: key))
        switch (first, second) {
        case (.null, .null): return nil
        case (.null, _): return false
        case (_, .null): return true
        default:
            if first.isBefore(second) == true { return ascending }
            return second.isBefore(first) == true ? !ascending : nil
        }
    }
}

extension [SortDescriptor] {
    /// Compares two entities by these keys and breaks ties by the bytes of the identifiers.
    public func precedes(_ left: some PredicateSubject, _ right: some PredicateSubject) -> Bool {
        for descriptor in self {
            if let answer = descriptor.precedes(left, right) { return answer }
        }
        return left.id < right.id
    }
}
