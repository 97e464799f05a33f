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
    /// Earliest and latest capture date of the members that are not in the trash and not among `excluded`.
    func captureDates(of collection: ObjectID, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?

    /// The member after a place in an album, or the first.
    func member(after key: OrderKey?, in collection: ObjectID) throws -> (id: ObjectID, key: OrderKey)?
    /// The album or folder after a place in a folder, or the first.
    func child(after key: OrderKey?, in list: ObjectID) throws -> (id: ObjectID, key: OrderKey)?

    /// Earliest and latest capture date in a moment, of assets that are not among `excluded`.
    func captureDates(of moment: Moment, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?
    /// Earliest first and latest last capture date of the moments in a list that are not among `excluded`.
    func momentDates(in list: MomentList, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?
    /// Assets that count as recently added and were added before a moment, at most `limit`.
    func recentlyAdded(before date: Int64, limit: Int) throws -> [ObjectID]
    /// Assets that went to the trash before a moment, at most `limit`.
    func trashed(before date: Int64, limit: Int) throws -> [ObjectID]
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

    /// - Parameter original: asked for how the entity was, where this is the first touch
    mutating func set(_ id: ObjectID, to entity: Entity?, from original: (ObjectID) throws -> Entity?) rethrows {
        if current[id] == nil {
            before[id] = .some(try original(id))
            order.append(id)
        }
        current[id] = .some(entity)
    }

    /// What is left of the changes, in the order in which the entities were first touched.
    func changes() -> [(id: ObjectID, before: Entity?, current: Entity?)] {
        order.map { ($0, before[$0] ?? nil, current[$0] ?? nil) }
    }
}
