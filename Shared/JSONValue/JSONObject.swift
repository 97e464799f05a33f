/// The members of a JSON object, in order.
///
/// Look-up is linear below sixteen members, as in nearly all messages, and uses an index of hashed names from there on.
public struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// The members, in their order; each name occurs once.
    public private(set) var members: [(name: String, value: JSON)]
    private var index: [String: Int]?

    private static let minIndexedCount = 16

    public init() {
        self.members = []
    }

    public init(dictionaryLiteral elements: (String, JSON)...) {
        self.init()
        for (name, value) in elements { self[name] = value }
    }

    /// Reserves memory for members that follow.
    mutating func reserveCapacity(_ count: Int) { members.reserveCapacity(count) }

    /// Creates an object from members whose names are known to be distinct.
    public init(distinct members: [(name: String, value: JSON)]) {
        self.members = members
    }

    /// The number of members.
    public var count: Int { members.count }
    /// True if there are no members.
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
        guard members.count >= Self.minIndexedCount else {
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
