import PhotoModel

/// The library before a transaction, as far as the rules of the transaction read it.
///
/// The service implements it with the database, tests with dictionaries.
protocol LibraryState {
    func asset(_ id: ObjectID) throws -> Asset?
    /// Reads assets that will be needed, all at once; identifiers without an asset are ignored.
    func prefetch(_ ids: [ObjectID]) throws
    func collection(_ id: ObjectID) throws -> AssetCollection?
    func list(_ id: ObjectID) throws -> CollectionList?
    /// Returns true if the history has a change of an object, which may have been deleted since.
    func hasHistory(of id: ObjectID) throws -> Bool
    /// Returns at most `limit` assets whose original has these bytes: first those that are not in the trash, then
    /// the others, each in the order of import.
    func assets(withOriginal digest: String, limit: Int) throws -> [ObjectID]
    /// Returns at most `limit` assets whose file has the same image data, except those in the trash, oldest import first.
    func assets(withImage digest: [UInt8], limit: Int) throws -> [ObjectID]
    /// Returns at most `limit` frames of a burst, ordered by identifier.
    func frames(ofBurst identifier: String, limit: Int) throws -> [ObjectID]
    /// Returns at most `limit` members of an album in album order.
    func members(of collection: ObjectID, limit: Int) throws -> [ObjectID]
    /// Returns those of some objects that are members of an album.
    func members(of collection: ObjectID, among ids: [ObjectID]) throws -> Set<ObjectID>
    func lastMemberKey(of collection: ObjectID) throws -> OrderKey?
    func lastChildKey(of list: ObjectID) throws -> OrderKey?
    /// Returns the number of levels of folders below a folder, counted up to `limit`; 0 without any.
    func levels(below list: ObjectID, limit: Int) throws -> Int
    /// Returns the earliest and latest capture date of the members that are not in the trash and not in `excluded`.
    func captureDates(of collection: ObjectID, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?

    /// Returns the member that follows an order key in an album, or the first member if the key is nil.
    func member(after key: OrderKey?, in collection: ObjectID) throws -> (id: ObjectID, key: OrderKey)?
    /// Returns the album or folder that follows an order key in a folder, or the first one if the key is nil.
    func child(after key: OrderKey?, in list: ObjectID) throws -> (id: ObjectID, key: OrderKey)?

    /// Returns the earliest and latest capture date of a moment's assets that are not in `excluded`.
    func captureDates(of moment: Moment, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?
    /// Returns the earliest start date and the latest end date of a list's moments that are not in `excluded`.
    func momentDates(in list: MomentList, excluding excluded: Set<ObjectID>) throws -> ClosedRange<Int64>?
    /// Returns at most `limit` assets that count as recently added and were added before a date.
    func recentlyAdded(before date: Int64, limit: Int) throws -> [ObjectID]
    /// Returns at most `limit` assets that were moved to the trash before a date.
    func trashed(before date: Int64, limit: Int) throws -> [ObjectID]
    /// Returns a published edit by its publisher's id for it; nil if it is unknown.
    func publishedEdit(_ id: String, of publisher: String) throws -> StoredEdit?
    /// Returns the number of published edits that are accepted and not finished.
    func pendingEdits() throws -> Int
}

extension LibraryState {
    /// Does nothing.
    func prefetch(_ ids: [ObjectID]) throws {}
}
