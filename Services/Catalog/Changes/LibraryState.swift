import PhotoModel

/// What the rules of a transaction ask of the library as it stands before the transaction.
///
/// The database answers in the service, dictionaries do in tests.
protocol LibraryState {
    func asset(_ id: ObjectID) throws -> Asset?
    func collection(_ id: ObjectID) throws -> AssetCollection?
    func list(_ id: ObjectID) throws -> CollectionList?
    /// The asset whose original has these bytes; the first that was taken in.
    func asset(withOriginal digest: String) throws -> ObjectID?
    /// Frames of a burst in the order of their identifiers, at most `limit`.
    func frames(ofBurst identifier: String, limit: Int) throws -> [ObjectID]
    /// Members of an album in its order, at most `limit`.
    func members(of collection: ObjectID, limit: Int) throws -> [ObjectID]
    func lastMemberKey(of collection: ObjectID) throws -> OrderKey?
    func lastChildKey(of list: ObjectID) throws -> OrderKey?
    /// Earliest and latest capture date of the members that are not among `excluded`.
    func captureDates(of collection: ObjectID, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?
    /// A published edit by its publisher's name for it.
    func publishedEdit(_ id: String, of publisher: String) throws -> StoredEdit?
    /// How many published edits are accepted and not finished.
    func pendingEdits() throws -> Int
}

/// Entities that a transaction has touched: as they were, and as they are now.
struct Touched<Entity> {
    private(set) var order: [ObjectID] = []
    private(set) var before: [ObjectID: Entity?] = [:]
    private(set) var current: [ObjectID: Entity?] = [:]

    var count: Int { order.count }

    /// The entity now; `nil` where it is untouched, `.some(nil)` where it is gone.
    func state(of id: ObjectID) -> Entity?? { current[id] }

    mutating func set(_ id: ObjectID, to entity: Entity?, from original: @autoclosure () -> Entity?) {
        if current[id] == nil {
            order.append(id)
            before[id] = .some(original())
        }
        current[id] = .some(entity)
    }

    /// What is left of the changes, in the order in which the entities were first touched.
    func changes() -> [(id: ObjectID, before: Entity?, current: Entity?)] {
        order.map { ($0, before[$0] ?? nil, current[$0] ?? nil) }
    }
}
