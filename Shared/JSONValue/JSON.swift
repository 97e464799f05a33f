/// A JSON value (RFC 8259).
///
/// Members of an object keep their order, so that a value always has the same bytes: records are compared and hashed by
/// their bytes. Whole numbers that fit are exact 64-bit integers; every other number is a `Double`.
public enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSON])
    case object(JSONObject)
}

/// The members of a JSON object, in order.
///
/// Look-up is linear below sixteen members, the size of nearly all messages, and hashed from there on.
public struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    public private(set) var members: [(name: String, value: JSON)]
    private var index: [String: Int]?

    private static let hashedFrom = 16

    public init() {
        self.members = []
    }

    public init(dictionaryLiteral elements: (String, JSON)...) {
        self.init()
        for (name, value) in elements { self[name] = value }
    }

    /// Creates an object from members whose names are known to be distinct.
    init(distinct members: [(name: String, value: JSON)]) {
        self.members = members
    }

    public var count: Int { members.count }
    public var isEmpty: Bool { members.isEmpty }

    private func position(of name: String) -> Int? {
        if let index { return index[name] }
        return members.firstIndex { $0.name == name }
    }

    /// The value of a member. Setting `nil` removes the member, setting a new name appends it.
    public subscript(name: String) -> JSON? {
        get { position(of: name).map { members[$0].value } }
        set {
            if let position = position(of: name) {
                if let newValue {
                    members[position].value = newValue
                } else {
                    members.remove(at: position)
                    rebuildIndex()
                }
            } else if let newValue {
                members.append((name, newValue))
                if index != nil { index?[name] = members.count - 1 } else { rebuildIndex() }
            }
        }
    }

    /// Appends a member. Returns false, without a change, if the name exists already.
    mutating func append(new name: String, _ value: JSON) -> Bool {
        guard position(of: name) == nil else { return false }
        members.append((name, value))
        if index != nil { index?[name] = members.count - 1 } else { rebuildIndex() }
        return true
    }

    private mutating func rebuildIndex() {
        guard members.count >= Self.hashedFrom else {
            index = nil
            return
        }
        index = Dictionary(members.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.members.elementsEqual(right.members) { $0.name == $1.name && $0.value == $1.value }
    }

    public func hash(into hasher: inout Hasher) {
        for (name, value) in members {
            hasher.combine(name)
            hasher.combine(value)
        }
    }
}

// MARK: - Reading a value

extension JSON {
    /// The text; nil for other values.
    public var stringValue: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    /// The flag; nil for other values.
    public var boolValue: Bool? {
        guard case .bool(let value) = self else { return nil }
        return value
    }

    /// The number as an integer, also for a `Double` that is a whole number within 64 bits.
    public var intValue: Int64? {
        switch self {
        case .int(let value): value
        case .double(let value): Int64(exactly: value)
        default: nil
        }
    }

    /// The number, also for an integer; nil for other values.
    public var doubleValue: Double? {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    /// The elements; nil for other values.
    public var arrayValue: [JSON]? {
        guard case .array(let value) = self else { return nil }
        return value
    }

    /// The members; nil for other values.
    public var objectValue: JSONObject? {
        guard case .object(let value) = self else { return nil }
        return value
    }

    public var isNull: Bool { self == .null }

    /// The value of a member; `nil` if this is not an object or has no such member.
    public subscript(name: String) -> JSON? {
        guard case .object(let object) = self else { return nil }
        return object[name]
    }
}

// MARK: - Writing a value in source

extension JSON: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSON)...) {
        var object = JSONObject()
        for (name, value) in elements { object[name] = value }
        self = .object(object)
    }

    public init(_ value: Int) { self = .int(Int64(value)) }
    public init(_ values: [String]) { self = .array(values.map(JSON.string)) }
}
