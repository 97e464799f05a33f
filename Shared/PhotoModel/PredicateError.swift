/// The reason why a predicate, a sort descriptor or a fetch is refused (D11).
public struct PredicateError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The names of these errors on the wire.
    public enum Name: String, Sendable, CaseIterable {
        /// A key or operator that the class does not have.
        case unsupportedPredicate = "unsupported_predicate"
        case unsupportedSortKey = "unsupported_sort_key"
        /// Text or a tree that is not a predicate, or a value of the wrong type.
        case invalidPredicate = "invalid_predicate"
        /// Fetch options that cannot be combined.
        case invalidOptions = "invalid_options"
        case limitExceeded = "limit_exceeded"
    }

    /// The name on the wire.
    public let name: Name
    /// The error and its remedy.
    public let message: String
    /// The key at fault.
    public var key: String?
    /// The class of the predicate, sort key or fetch.
    public var entityClass: EntityClass?
    /// The byte offset in the text form.
    public var offset: Int?
    /// The keys, operators or names that are accepted.
    public var allowed: [String]

    public init(
        _ name: Name,
        _ message: String,
        key: String? = nil,
        entityClass: EntityClass? = nil,
        offset: Int? = nil,
        allowed: [String] = []
    ) {
        self.name = name
        self.message = message
        self.key = key
        self.entityClass = entityClass
        self.offset = offset
        self.allowed = allowed
    }

    public var description: String {
        let position = offset.map { " (at byte \($0))" } ?? ""
        return "\(name.rawValue): \(message)\(position)" + (allowed.isEmpty ? "" : "; allowed: " + list)
    }

    private var list: String { allowed.joined(separator: ", ") }

    static func unknownKey(_ key: String, of entityClass: EntityClass, offset: Int? = nil) -> PredicateError {
        PredicateError(
            .unsupportedPredicate,
            "\(entityClass.rawValue) has no key \"\(key.prefix(100))\"",
            key: String(key.prefix(100)),
            entityClass: entityClass,
            offset: offset,
            allowed: entityClass.keys.map(\.name)
        )
    }

    func at(_ offset: Int) -> PredicateError {
        var error = self
        if error.offset == nil { error.offset = offset }
        return error
    }
}
