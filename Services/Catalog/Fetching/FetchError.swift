import PhotoModel

/// The reason why a fetch, or the comparison of two results, is refused.
enum FetchError: RefusedRequest, Equatable {
    /// The method does not return entities of the kind that the fetch describes.
    case wrongKind(accepted: String)
    /// The index is beyond the end of the result.
    case indexOutOfRange(Int, count: Int)
    /// The objects of the page have too many bytes.
    case pageTooLarge(limit: Int)
    /// `after` is not the end of a page.
    case badPosition(String)
    /// No change records describe how the result of the fetch changes.
    case notFollowable
    /// The fetch depends on the files that are on this machine, which the history does not contain.
    case localFiles
    /// `from` is later than `to`.
    case rangeReversed
    /// The two results are of different classes.
    case differentClasses(EntityClass, EntityClass)
    /// `snapshotFetch` is not a fetch of the members of the object that is changed.
    case foreignSnapshot(ObjectID)
    /// The list is too large for operations by index.
    case snapshotTooLarge(ObjectID, count: Int, limit: Int)
    /// The lists of the index operations of a transaction are too large together, or the operations too many.
    case snapshotsTooLarge(limit: Int, steps: Int)
    /// The lists of the index operations of waiting transactions are too large together.
    case tooManySnapshots(limit: Int)

    // MARK: Keys

    /// `fetch.keys` was called on a socket that receives no notifications.
    case keysWithoutNotifications
    /// `fetch.keys` does not support the fetch.
    case noKeys
    /// Too many albums and folders are below the folder.
    case scopeTooLarge(limit: Int)
    /// The result has too many keys, or too many bytes of keys.
    case tooManyKeys(limit: Int, maxBytes: Int)
    /// The keys of a client's result have too many bytes.
    case tooManyKeyBytes(limit: Int)
    /// The keys that wait for the credit of their clients have too many bytes.
    case tooManyWaitingKeys(limit: Int)

    // MARK: Transient collections

    /// The collections of a transient list have too many assets.
    case tooManyAssets(ObjectID, limit: Int)
    /// The identity has too many transient collections, or too many members in them.
    case tooManyTransients(limit: Int, members: Int)
    /// The transient collections of all identities together have the maximum number of members.
    case transientsFull(members: Int)
    /// The result is too large for a transient collection.
    case resultTooLarge(count: Int, limit: Int)
    /// The transient collection does not exist, has expired, or belongs to another identity.
    case expired(ObjectID)
    /// Both identifiers and results are given for a transient collection, or neither.
    case idsAndResults
    /// A transient collection mixes assets with collections.
    case mixedMembers
}
