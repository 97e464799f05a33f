import Contracts
import JSONValue
import PhotoModel

/// The requests that undo a transaction exactly: afterwards each entity is as before, except for its revision and
/// modification date.
struct InverseChange {
    /// The requests of one transaction. The conditions are updates that name a revision. They come first, because each
    /// of the other requests gives its object a new revision.
    var requests: [ChangeRequest] { conditions + changes }
    private var conditions: [ChangeRequest] = []
    private var changes: [ChangeRequest] = []
    private var restored: [ObjectID] = []
    /// Edits that the editor has to undo.
    private(set) var edits: [UndoEdits] = []
    /// The albums whose revision is a condition, with their revisions before and after the change.
    private(set) var albums: [ObjectID: (before: Revision?, after: Revision)] = [:]

    /// An album of which a later change of the same command was undone.
    struct UndoneAlbum {
        /// Its revision before the later change.
        let before: Revision?
        /// Its revision now.
        let now: Revision
    }

    /// Members that every change of an asset changes, or that are derived from others.
    private static let derivedMembers: Set = [
        "revision", "contentRevision", "modificationDate", "isRecentlyAdded", "isCreationOffsetDerived",
        "hasOnlyModificationDate",
    ]
    /// Members of an album that a change of its title or its assets changes.
    private static let albumMembers: Set = [
        "revision", "modificationDate", "title", "estimatedAssetCount", "keyAsset", "startDate", "endDate",
        "approximateLocation", "localizedLocationNames",
    ]
    /// Members of a folder that are derived from the albums and folders in it.
    private static let derivedFolderMembers: Set = [
        "revision", "modificationDate", "childCount", "startDate", "endDate",
    ]
    private static let settable: Set = [
        "isFavorite", "isHidden", "creationDate", "creationOffset", "location", "caption", "rating", "keywords",
        "playbackVariation",
    ]

    /// - Throws: ``CommandFailure`` that names the part without an exact inverse
    init(of record: ChangeRecord) throws {
        guard record.grants.isEmpty, record.questions.isEmpty else { throw Self.refusal("decisions about access") }
        // Checked before the albums, which the deletion has changed too.
        if let deleted = record.assets.first(where: { $0.after == nil }) {
            throw Self.refusal("the deletion of \(deleted.id)")
        }
        for change in record.collections where (change.after ?? change.before)?.type == .album {
            try undo(change, record)
        }
        // Moments and their years are derived from the dates and locations of assets.
        let folders = record.lists.filter { ($0.after ?? $0.before)?.type == .folder }
        for change in folders { try undo(change, folders) }
        for change in record.assets { try undo(change) }
        if !restored.isEmpty { changes.append(.restoreAssets(.init(ids: restored))) }
        guard requests.count <= ChangeRecord.maxEntities else {
            throw Self.refusal("a change of \(record.assets.count) assets at a time")
        }
        guard !requests.isEmpty || !edits.isEmpty else { throw Self.refusal("this change") }
        // Each edit is a request of its own, and any of them may be refused after the others were performed.
        guard edits.count + (requests.isEmpty ? 0 : 1) == 1 else {
            throw Self.refusal(
                "several edits, or an edit together with other changes,",
                "; `safelight history ID --undo-to STEP` undoes the edit of one asset"
            )
        }
    }

    /// Returns the error for a part that has no exact inverse.
    private static func refusal(_ part: String, _ advice: String = "") -> CommandFailure {
        CommandFailure(
            message: "\(part) cannot be undone exactly, and nothing was changed\(advice)",
            name: ErrorCode.requestNotSupported.rawValue
        )
    }

    // MARK: Albums

    private mutating func undo(_ change: EntityChange<AssetCollection>, _ record: ChangeRecord) throws {
        guard let after = change.after else { throw Self.refusal("a deleted album") }
        guard let before = change.before else {
            conditions.append(.updateCollection(.init(id: .id(after.id), ifRevision: after.revision)))
            albums[after.id] = (nil, after.revision)
            changes.append(.deleteCollections(.init(ids: [after.id])))
            return
        }
        var update = ChangeRequest.UpdateCollection(id: .id(after.id), ifRevision: after.revision)
        let names = Self.differences(before.json, after.json)
        guard names.isSubset(of: Self.albumMembers) else { throw Self.refusal("this change of an album") }
        if before.title != after.title { update.title = before.title }
        for asset in record.assets {
            let keys = [asset.before, asset.after].map { asset in
                asset?.memberships.first { $0.collection == after.id }?.key
            }
            switch (keys[0], keys[1]) {
            case (nil, .some): update.remove.append(asset.id)
            case (.some, nil): throw Self.refusal("an asset's position in an album that it was removed from")
            case (let old?, let new?) where old != new: throw Self.refusal("an asset's former position in an album")
            default: break
            }
        }
        if names.contains("keyAsset"), update.remove.isEmpty { throw Self.refusal("the former cover of an album") }
        guard update.title != nil || !update.remove.isEmpty else { return }
        conditions.append(.updateCollection(update))
        albums[after.id] = (before.revision, after.revision)
    }

    /// Changes the conditions to the revisions that albums have after later changes of the same command were undone.
    ///
    /// - Throws: ``CommandFailure`` `conflict` if something else has changed an album between those changes
    mutating func updateConditions(_ undone: [ObjectID: UndoneAlbum]) throws {
        for index in conditions.indices {
            guard case .updateCollection(var update) = conditions[index], case .id(let id) = update.id,
                let later = undone[id]
            else { continue }
            guard later.before == update.ifRevision else {
                throw CommandFailure(
                    message: "the album \(id) was changed again between the changes of the command",
                    name: ErrorCode.conflict.rawValue
                )
            }
            update.ifRevision = later.now
            conditions[index] = .updateCollection(update)
        }
    }

    // MARK: Folders

    private mutating func undo(
        _ change: EntityChange<CollectionList>,
        _ folders: [EntityChange<CollectionList>]
    ) throws {
        guard let after = change.after else { throw Self.refusal("a deleted folder") }
        guard let before = change.before else {
            conditions.append(.updateList(.init(id: .id(after.id), ifRevision: after.revision)))
            // A folder is deleted with the new folders in it.
            if !folders.contains(where: { $0.before == nil && $0.after?.id == after.parent }) {
                changes.append(.deleteLists(.init(ids: [after.id])))
            }
            return
        }
        let names = Self.differences(before.json, after.json)
        guard names.isSubset(of: Self.derivedFolderMembers) else { throw Self.refusal("changes of folders") }
    }

    // MARK: Assets

    private mutating func undo(_ change: EntityChange<Asset>) throws {
        guard let after = change.after, let before = change.before else {
            throw Self.refusal("an import", "; `safelight trash` removes its assets")
        }
        var names = Self.differences(before.json, after.json).subtracting(Self.derivedMembers)
        names.remove("memberships")
        if change.isContentChanged {
            guard after.hasAdjustments || before.hasAdjustments else { throw Self.refusal("a new original") }
            edits.append(UndoEdits(asset: after.id, ifContentRevision: after.contentRevision))
            // The editor restores the former image and all members that are derived from it.
            guard names.isDisjoint(with: Self.settable), before.trashedDate == after.trashedDate else {
                throw Self.refusal("an edit together with other changes")
            }
            return
        }
        if names.remove("trashedDate") != nil {
            guard before.trashedDate == nil else { throw Self.refusal("the former date in the trash") }
            restored.append(after.id)
        }
        guard names.isSubset(of: Self.settable) else {
            throw Self.refusal("a change of \(names.subtracting(Self.settable).sorted().joined(separator: ", "))")
        }
        guard !names.isEmpty || restored.last == after.id else { return }
        var patch = AssetPatch()
        for name in names {
            switch name {
            case "isFavorite": patch.isFavorite = before.isFavorite
            case "isHidden": patch.isHidden = before.isHidden
            case "creationDate": patch.creationDate = .some(before.creationDate)
            case "creationOffset": patch.creationOffset = .some(before.creationOffset)
            case "location": patch.location = .some(before.location)
            case "caption": patch.caption = .some(before.caption)
            case "rating": patch.rating = before.rating
            case "keywords": patch.keywords = before.keywords
            default: patch.playbackVariation = before.playbackVariation
            }
        }
        conditions.append(.updateAsset(.init(id: .id(after.id), set: patch, ifRevision: after.revision)))
    }

    /// Returns the names of the members that differ between two objects.
    private static func differences(_ before: JSON, _ after: JSON) -> Set<String> {
        let (before, after) = (before.objectValue ?? [:], after.objectValue ?? [:])
        let names = Set(before.members.map(\.name)).union(after.members.map(\.name))
        return names.filter { before[$0] != after[$0] }
    }
}
