import PhotoModel

/// The reason why a transaction, or a request of it, is refused.
enum ChangeError: RefusedRequest, Equatable {
    // MARK: Transactions

    /// `recall` was given without a transaction id.
    case recallWithoutTransaction
    /// The transaction touches too many assets and collections.
    case tooManyObjects(limit: Int)
    /// The requests of the transaction name too many objects, whether they change or not.
    case tooManyNames(limit: Int)
    /// The metadata of the request's bytes is needed, but the bytes have none.
    case noMetadata
    /// No earlier request of the transaction has this ref.
    case unknownReference(String)
    /// Two requests of the transaction have this ref.
    case duplicateReference(String)
    /// A text contains the character U+0000.
    case unstorableText(parameter: String)
    /// A text is too long in the form in which it is stored.
    case textTooLong(parameter: String, bytes: Int, limit: Int)
    /// `changes.follow` was called on a socket that receives no notifications.
    case followWithoutNotifications

    // MARK: Objects

    /// The identifier is not of the kind that the request is about.
    case wrongKind(ObjectID, expected: ObjectKind)
    /// A new object cannot have the identifier that the client chose.
    case identifierRefused(ObjectID)
    /// A transient collection cannot be changed.
    case transient(ObjectID)
    /// The object has another revision than the request expects.
    case changed(ObjectID, current: Revision, expected: Revision)

    // MARK: Assets

    /// A new asset has no original.
    case noOriginalSent
    /// The asset has no original to revert to.
    case noOriginal(ObjectID)
    /// The asset is not a frame of a burst.
    case notInBurst(ObjectID)
    /// `isUserPick` was set for an asset that is not a frame of a burst.
    case pickOutsideBurst(ObjectID)
    /// An effect was chosen for an asset that is not a Live Photo.
    case effectWithoutLivePhoto(ObjectID, effect: String)
    /// The asset would have more keywords than the limit.
    case tooManyKeywords(limit: Int)
    /// The asset was synced from another device.
    case synced(ObjectID)

    // MARK: Edits

    /// An edit lacks its render or its adjustment data.
    case incompleteEdit
    /// The render is an image and the asset a video, or the reverse.
    case mediaTypeDiffers(ObjectID, asset: MediaType, render: MediaType)
    /// A video was sent with the edit of an asset that is not a Live Photo.
    case noLivePhoto(ObjectID)
    /// The video that was sent with the edit of a Live Photo is an image.
    case pairedVideoIsNoVideo(ObjectID)
    /// The input token belongs to another asset.
    case foreignInputToken(of: ObjectID, edit: ObjectID)
    /// The asset has changed since the edit began.
    case outdatedInputToken(ObjectID, revision: Revision, contentRevision: Revision)
    /// The asset does not have both a RAW and a compressed original.
    case noOriginalChoice(ObjectID)

    // MARK: Published edits

    /// The id was used for an edit with other content.
    case editIDReused(String)
    /// The edit's content is too large.
    case editTooLarge(bytes: Int, limit: Int)
    /// Too many accepted edits are not finished.
    case tooManyEdits(limit: Int)
    /// No such edit of the asset was accepted.
    case editNotFound(String, asset: ObjectID)
    /// The edit was finished before.
    case editFinished(String, state: String, sequence: Int64)
    /// A client that is not a service records a published edit.
    case noPublisher
    /// A transaction contains several published edits.
    case severalPublishedEdits

    // MARK: Collections and folders

    /// The collection or folder is derived from its assets.
    case derived(ObjectID)
    /// A collection that is derived from its assets cannot be deleted.
    case undeletable(ObjectID)
    /// A collection that is derived from its assets cannot be put into a folder.
    case derivedInFolder(ObjectID)
    /// The key asset is not a member of its album.
    case keyAssetNotMember(ObjectID)
    /// The collection has more members than a transaction may touch.
    case tooManyMembers(ObjectID, limit: Int)
    /// The asset cannot be added to albums.
    case cannotJoinAlbums(ObjectID)
    /// The asset is in too many albums.
    case tooManyAlbums(ObjectID, limit: Int)
    /// The key of a position in the collection would be too long.
    case orderKeyTooLong(ObjectID)
    /// The root folder has no title.
    case rootHasNoTitle
    /// The root folder cannot be deleted.
    case rootUndeletable
    /// The root folder cannot be moved.
    case rootUnmovable
    /// A child of the root folder can leave it only for another folder.
    case inRoot(ObjectID)
    /// Folders would be nested too deep.
    case tooDeep(limit: Int)
    /// A folder would be in itself.
    case cycle(ObjectID, in: ObjectID)

    // MARK: Members by index

    /// Indexes were sent without the list that they refer to.
    case noSnapshot
    /// `insert` does not have one index for each member.
    case insertCountDiffers
    /// `replace` does not have one member for each index.
    case replaceCountDiffers
    /// A member is given twice.
    case duplicateMember
    /// The indexes are not in ascending order.
    case unorderedIndexes
    /// The index is beyond the end of the list.
    case indexOutOfRange(Int, count: Int)
}

/// The rules need the metadata of bytes that were not read, because the asset that had them was deleted meanwhile.
struct MissingMetadataError: Error {}
