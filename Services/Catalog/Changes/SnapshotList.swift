import Contracts
import JSONValue
import PhotoModel

/// A list as a client saw it: its members by position.
struct SnapshotList: Sendable {
    let count: Int
    let id: @Sendable (Int) throws -> ObjectID
    /// Returns the position of a member; nil if it is not in the list.
    let position: @Sendable (ObjectID) throws -> Int?
    private var memory: SnapshotMemory.Reservation?

    init(
        count: Int,
        id: @escaping @Sendable (Int) throws -> ObjectID,
        position: @escaping @Sendable (ObjectID) throws -> Int?
    ) {
        self.count = count
        self.id = id
        self.position = position
    }

    /// - Parameter memory: the memory of the list, which is released with it; nil for a small one
    init(_ ids: [ObjectID], _ memory: SnapshotMemory.Reservation? = nil) {
        let list = IDList(ids)
        self.init(count: list.ids.count, id: { list.ids[$0] }, position: { list.position(of: $0) })
        self.memory = memory
    }
}
