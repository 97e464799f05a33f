import Contracts
import JSONValue
import PhotoModel

/// The changes that a transaction makes, before they are written.
struct TransactionResult: Sendable, Equatable {
    var assets: [EntityChange<Asset>] = []
    var collections: [EntityChange<AssetCollection>] = []
    var lists: [EntityChange<CollectionList>] = []
    /// Published edits whose state changed.
    var edits: [PublishedEdit] = []
    /// The same edits as stored rows.
    var editRows: [StoredEdit] = []
    /// The digests of the image data of files that were read.
    var imageDigests: [ImageDigest] = []

    var isEmpty: Bool { assets.isEmpty && collections.isEmpty && lists.isEmpty && edits.isEmpty }
}

extension ChangeTransaction {
    /// Returns the reply to a transaction that was performed.
    func reply(token: ChangeToken, isChanged: Bool) -> PerformChanges.Result {
        var ids = JSONObject()
        for (ref, id) in placeholders { ids[ref] = .string(id.text) }
        return PerformChanges.Result(
            token: token,
            isChanged: isChanged,
            placeholders: ids,
            duplicates: duplicates,
            restored: restored,
            ignored: ignored,
            sameImage: sameImage
        )
    }

    /// Ends the transaction and returns the entities that it changed, with new revisions and all derived values: counts
    /// and dates of albums, and moments.
    mutating func finish() throws -> TransactionResult {
        try requireLevels()
        for burst in bursts.sorted() { try settleBurst(burst) }
        var result = TransactionResult()
        result.edits = edits
        result.imageDigests = imageDigests
        result.editRows = editRows.values.sorted { $0.id < $1.id }
        // The states are moved, not copied: an asset has many properties, and there may be a thousand assets.
        var touched = takeAssets()
        result.assets.reserveCapacity(touched.count)
        for index in touched.indices {
            let (before, current) = (touched[index].before.take(), touched[index].current.take())
            if let change = makeChange(touched[index].id, before, current) { result.assets.append(change) }
        }
        let albumsWithOtherMembers = try updateAlbums(result.assets)
        try updateMoments(result.assets)
        for (_, before, current) in collections.entries {
            let hasOtherMembers = (before ?? current).map { albumsWithOtherMembers.contains($0.id) } ?? false
            if let change = makeChange(before, current, hasOtherMembers) { result.collections.append(change) }
        }
        for (_, before, current) in lists.entries {
            if let change = makeChange(before, current) { result.lists.append(change) }
        }
        return result
    }

    /// Returns the change of an asset with its new revision; nil if it did not change. Changes of the properties that
    /// ``copyUndatedFacts(of:)`` copies do not change the modification date.
    private func makeChange(
        _ id: ObjectID,
        _ before: consuming Asset?,
        _ current: consuming Asset?
    ) -> EntityChange<Asset>? {
        guard var after = current else { return before.map { EntityChange(before: $0, after: nil) } }
        // In the order in which memberships are read, so that all copies of a revision are equal.
        if after.memberships.count > 1 { after.memberships.sort { $0.collection < $1.collection } }
        guard let before else { return EntityChange(before: nil, after: after) }
        if contentChanged.contains(id) {
            after.contentRevision = Revision(sequence)
            after.contentModificationDate = now
        }
        guard after != before else { return nil }
        if after.hasSameUndatedFacts(as: before) {
            after.modificationDate = now
        } else {
            var withoutThem = after
            withoutThem.copyUndatedFacts(of: before)
            if withoutThem != before { after.modificationDate = now }
        }
        after.revision = Revision(sequence)
        return EntityChange(before: before, after: after)
    }

    private func makeChange(
        _ before: AssetCollection?,
        _ current: AssetCollection?,
        _ hasOtherMembers: Bool
    ) -> EntityChange<AssetCollection>? {
        guard var after = current else { return before.map { EntityChange(before: $0, after: nil) } }
        guard let before else { return EntityChange(before: nil, after: after) }
        guard after != before || hasOtherMembers else { return nil }
        after.modificationDate = now
        after.revision = Revision(sequence)
        return EntityChange(before: before, after: after)
    }

    private func makeChange(_ before: CollectionList?, _ current: CollectionList?) -> EntityChange<CollectionList>? {
        guard var after = current else { return before.map { EntityChange(before: $0, after: nil) } }
        guard let before else { return EntityChange(before: nil, after: after) }
        guard after != before else { return nil }
        after.modificationDate = now
        after.revision = Revision(sequence)
        return EntityChange(before: before, after: after)
    }

    /// Updates counts, key assets and capture date ranges of albums.
    ///
    /// - Returns: the albums whose members or order changed
    private mutating func updateAlbums(_ changes: [EntityChange<Asset>]) throws -> Set<ObjectID> {
        var steps: [ObjectID: Int] = [:]
        var leaving: [ObjectID: Set<ObjectID>] = [:]
        var withOtherMembers: Set<ObjectID> = []
        for index in changes.indices {
            let (before, after) = (changes[index].before?.memberships ?? [], changes[index].after?.memberships ?? [])
            guard !before.isEmpty || !after.isEmpty else { continue }
            let change = changes[index]
            let wasInTrash = change.before?.trashedDate != nil
            let isInTrash = change.after?.trashedDate != nil
            for id in Set((before + after).map(\.collection)) {
                let (old, new) = (change.before?.orderKey(in: id), change.after?.orderKey(in: id))
                guard old != new || wasInTrash != isInTrash || change.before?.creationDate != change.after?.creationDate
                else { continue }
                steps[id, default: 0] += (new != nil && !isInTrash ? 1 : 0) - (old != nil && !wasInTrash ? 1 : 0)
                if old != new || wasInTrash != isInTrash { withOtherMembers.insert(id) }
                if new == nil || isInTrash { leaving[id, default: []].insert(change.id) }
            }
        }
        guard !steps.isEmpty else { return withOtherMembers }
        let touched = Set(changes.map(\.id))
        let untrashed = changes.compactMap(\.after).filter { $0.trashedDate == nil }
        for (id, step) in steps.sorted(by: { $0.key < $1.key }) {
            guard let before = try collection(id) else { continue }
            var collection = before
            collection.estimatedAssetCount = max(0, (collection.estimatedAssetCount ?? 0) + step)
            if let keyAsset = collection.keyAsset, leaving[id]?.contains(keyAsset) == true { collection.keyAsset = nil }
            let dates = untrashed.filter { $0.orderKey(in: id) != nil }.compactMap(\.creationDate)
            let others = try state.captureDates(of: id, excluding: touched)
            collection.startDate = [dates.min(), others?.lowerBound].compactMap { $0 }.min()
            collection.endDate = [dates.max(), others?.upperBound].compactMap { $0 }.max()
            if before != collection || withOtherMembers.contains(id) { try set(collection) }
        }
        return withOtherMembers
    }
}

extension Asset {
    /// Copies the properties whose changes do not count as modifications of the asset: its albums, whether it is
    /// recently added, and metadata that is read from the file.
    fileprivate mutating func copyUndatedFacts(of other: Asset) {
        memberships = other.memberships
        isRecentlyAdded = other.isRecentlyAdded
        metadata = other.metadata
        (cameraMake, cameraModel, lensModel) = (other.cameraMake, other.cameraModel, other.lensModel)
        hasOnlyModificationDate = other.hasOnlyModificationDate
        isCreationOffsetDerived = other.isCreationOffsetDerived
    }

    fileprivate func hasSameUndatedFacts(as other: Asset) -> Bool {
        memberships == other.memberships && isRecentlyAdded == other.isRecentlyAdded && metadata == other.metadata
            && cameraMake == other.cameraMake && cameraModel == other.cameraModel && lensModel == other.lensModel
            && hasOnlyModificationDate == other.hasOnlyModificationDate
            && isCreationOffsetDerived == other.isCreationOffsetDerived
    }
}

// MARK: - Moments

extension ChangeTransaction {
    /// Updates moments and their lists after changes of assets (S-07): a moment is created with its first asset and
    /// deleted with its last one, in the same transaction.
    mutating func updateMoments(_ changes: [EntityChange<Asset>]) throws {
        var steps: [Moment: Int] = [:]
        for index in changes.indices {
            let (before, after) = (changes[index].before?.moment, changes[index].after?.moment)
            let (old, new) = (changes[index].before?.creationDate, changes[index].after?.creationDate)
            guard before != after || old != new else { continue }
            if let before { steps[before, default: 0] -= 1 }
            if let after { steps[after, default: 0] += 1 }
        }
        guard !steps.isEmpty else { return }
        var members: [Moment: [Asset]] = [:]
        for asset in changes.compactMap(\.after) {
            if let moment = asset.moment { members[moment, default: []].append(asset) }
        }
        let touched = Set(changes.map(\.id))
        var changed: [(before: AssetCollection?, after: AssetCollection?, moment: Moment)] = []
        for (moment, step) in steps.sorted(by: { $0.key < $1.key }) {
            let before = try collection(moment.id)
            var collection = before ?? AssetCollection(moment, revision: Revision(sequence))
            if before == nil {
                (collection.creationDate, collection.modificationDate) = (now, now)
                collection.localizedLocationNames = moment.placeNames
            }
            let count = (collection.estimatedAssetCount ?? 0) + step
            guard count > 0 else {
                if before != nil { try setDerived(moment.id, nil as AssetCollection?) }
                changed.append((before, nil, moment))
                continue
            }
            let dates = members[moment, default: []].compactMap(\.creationDate)
            let others = try state.captureDates(of: moment, excluding: touched)
            collection.estimatedAssetCount = count
            collection.startDate = [dates.min(), others?.lowerBound].compactMap { $0 }.min()
            collection.endDate = [dates.max(), others?.upperBound].compactMap { $0 }.max()
            guard collection != before else { continue }
            try setDerived(moment.id, collection)
            changed.append((before, collection, moment))
        }
        try updateMomentLists(changed)
    }

    private mutating func updateMomentLists(
        _ changed: [(before: AssetCollection?, after: AssetCollection?, moment: Moment)]
    ) throws {
        var lists: [MomentList: [(before: AssetCollection?, after: AssetCollection?, moment: Moment)]] = [:]
        for change in changed where change.before != nil || change.after != nil {
            for list in change.moment.lists { lists[list, default: []].append(change) }
        }
        let touched = Set(changed.map(\.moment.id))
        for (list, changes) in lists.sorted(by: { $0.key.id < $1.key.id }) {
            let before = try self.list(list.id)
            var entity = before ?? CollectionList(list, revision: Revision(sequence))
            if before == nil { (entity.creationDate, entity.modificationDate) = (now, now) }
            entity.childCount += changes.reduce(0) { $0 + ($1.after == nil ? 0 : 1) - ($1.before == nil ? 0 : 1) }
            guard entity.childCount > 0 else {
                if before != nil { try setDerived(list.id, nil as CollectionList?) }
                continue
            }
            let others = try state.momentDates(in: list, excluding: touched)
            let moments = changes.compactMap(\.after)
            entity.startDate = [moments.compactMap(\.startDate).min(), others?.lowerBound].compactMap { $0 }.min()
            entity.endDate = [moments.compactMap(\.endDate).max(), others?.upperBound].compactMap { $0 }.max()
            if entity != before { try setDerived(list.id, entity) }
        }
    }
}
