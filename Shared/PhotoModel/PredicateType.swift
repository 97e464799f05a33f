/// The type of a key: the literals that it accepts and their meaning.
public enum PredicateType: Sendable, Hashable {
    case text
    case integer
    /// A finite `Double`.
    case number
    /// Microseconds since 1970. Literals are RFC 3339 text, whole microseconds, or CAST(…, "NSDate").
    ///
    /// A day as text, `2024-05-01`, is the whole day in UTC: `<=` and the end of BETWEEN include it.
    case date
    /// Microseconds. Literals are numbers of a ``Predicate/DurationUnit``, or text with a unit: "60 s", see
    /// ``DurationText``.
    case duration
    /// Literals are true and false, or 1 and 0.
    case flag
    case id
    /// An enumeration. Literals are its names or PhotoKit's numbers.
    case name([Name])
    /// A mask. Literals are lists of names, one name, or a number.
    case bits([Name])
    /// A list of texts, queried with `ANY`.
    case textList

    /// The name of an enumeration case or of a bit, with PhotoKit's number.
    public struct Name: Sendable, Hashable {
        /// The name.
        public let name: String
        /// PhotoKit's number, or the bit.
        public let number: Int64
    }

    static func name<Value: NumberedName>(_: Value.Type) -> PredicateType {
        .name(Value.allCases.map { Name(name: $0.rawValue, number: Int64($0.number)) })
    }

    static func bits<Value: NamedBits>(_: Value.Type) -> PredicateType {
        .bits(Value.names.map { Name(name: $0.name, number: Int64($0.bit)) })
    }

    /// Returns a description of the literals that the type accepts.
    func literals(durations: Predicate.DurationUnit) -> String {
        switch self {
        case .text: "text"
        case .integer: "a whole number"
        case .number: "a number"
        case .date: "a date: RFC 3339 text, or microseconds since 1970"
        case .duration:
            "\(durations.rawValue), or a number with a unit: \(DurationText.units.map(\.name).joined(separator: ", "))"
        case .flag: "true or false"
        case .id: "an identifier"
        case .name(let names): "one of " + names.map(\.name).joined(separator: ", ")
        case .bits(let names): "a mask: a number, or names from " + names.map(\.name).joined(separator: ", ")
        case .textList: "a list of texts"
        }
    }
}
