/// Identifiers in the given order without repetitions.
public struct IDList: Sendable, Hashable {
    /// The identifiers, each once.
    public let ids: [ObjectID]
    private let positions: [ObjectID: Int]

    /// Creates a list in which a repeated identifier has its first position.
    public init(_ ids: [ObjectID]) {
        var positions: [ObjectID: Int] = [:]
        var unique: [ObjectID] = []
        for id in ids where positions[id] == nil {
            positions[id] = unique.count
            unique.append(id)
        }
        self.ids = unique
        self.positions = positions
    }

    /// Returns the position of an identifier, from 0; nil if it is not in the list.
    public func position(of id: ObjectID) -> Int? { positions[id] }

    /// Returns true if the list has an identifier.
    public func contains(_ id: ObjectID) -> Bool { positions[id] != nil }

    public static func == (left: IDList, right: IDList) -> Bool { left.ids == right.ids }

    public func hash(into hasher: inout Hasher) { hasher.combine(ids) }
}
