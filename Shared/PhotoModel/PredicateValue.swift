/// The value of a property in a predicate: one of the value types that SQL also has, or null.
///
/// Flags are 0 and 1, enumerations are their PhotoKit number, masks their bits, dates and durations microseconds,
/// identifiers their text.
public enum PredicateValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case number(Double)
    case text(String)

    /// Compares two values of one key: integers and numbers by size, text by its UTF-8 bytes.
    ///
    /// Returns `nil` if there is no order: one of them is null, or they are of different types.
    public func isBefore(_ other: PredicateValue) -> Bool? {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): left < right
        case (.number(let left), .number(let right)): left < right
        case (.text(let left), .text(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
        default: nil
        }
    }

    /// Equality in predicates: null equals only null, text is compared by its bytes.
    public static func == (left: PredicateValue, right: PredicateValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.integer(let left), .integer(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .integer(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value)
        case .text(let value): hasher.combine(value)
        }
    }

    static func flag(_ flag: Bool) -> PredicateValue { .integer(flag ? 1 : 0) }
    static func integer(_ value: Int) -> PredicateValue { .integer(Int64(value)) }
    static func integer(_ value: Int64?) -> PredicateValue { value.map { .integer($0) } ?? .null }
    static func integer(_ value: Int?) -> PredicateValue { value.map { .integer(Int64($0)) } ?? .null }
    static func number(_ value: Double?) -> PredicateValue { value.map { .number($0) } ?? .null }
    static func text(_ value: String?) -> PredicateValue { value.map { .text($0) } ?? .null }
}

/// The class of entities to which a predicate applies.
public enum EntityClass: String, Sendable, CaseIterable {
    case asset
    case assetCollection
    case collectionList
    /// Albums and folders mixed: PhotoKit's `PHCollection`.
    case collection
}
