import PhotoModel

/// What a transaction came to.
struct TransactionResult: Sendable, Equatable {
    var assets: [EntityChange<Asset>] = []
    var collections: [EntityChange<AssetCollection>] = []
    var lists: [EntityChange<CollectionList>] = []

    var isEmpty: Bool { assets.isEmpty && collections.isEmpty && lists.isEmpty }
}

extension ChangeTransaction {
    /// The entities that really changed, with their new revisions and everything that follows: facts of albums, dates.
    mutating func finish() throws -> TransactionResult {
        var result = TransactionResult()
        for (id, before, current) in assets.changes() {
            if let change = finished(id, before, current) { result.assets.append(change) }
        }
        try updateDates(result.assets)
        for (_, before, current) in collections.changes() {
            if let change = finished(before, current) { result.collections.append(change) }
        }
        for (_, before, current) in lists.changes() {
            if let change = finished(before, current) { result.lists.append(change) }
        }
        return result
    }

    /// An asset's modification date is that of its own facts: to be put into an album is a new revision, not a
    /// modification.
    private func finished(_ id: ObjectID, _ before: Asset?, _ current: Asset?) -> EntityChange<Asset>? {
        guard var after = current else { return before.map { EntityChange(before: $0, after: nil) } }
        guard let before else { return EntityChange(before: nil, after: after) }
        if contentChanged.contains(id) {
            after.contentRevision = Revision(sequence)
            after.contentModificationDate = now
        }
        guard after != before else { return nil }
        var withoutAlbums = after
        withoutAlbums.memberships = before.memberships
        if withoutAlbums != before { after.modificationDate = now }
        after.revision = Revision(sequence)
        return EntityChange(before: before, after: after)
    }

    private func finished(_ before: AssetCollection?, _ current: AssetCollection?) -> EntityChange<AssetCollection>? {
        guard var after = current else { return before.map { EntityChange(before: $0, after: nil) } }
        guard let before else { return EntityChange(before: nil, after: after) }
        let haveMembersChanged = membersChanged.contains(after.id)
        guard after != before || haveMembersChanged else { return nil }
        after.modificationDate = now
        after.revision = Revision(sequence)
        return EntityChange(before: before, after: after)
    }

    private func finished(_ before: CollectionList?, _ current: CollectionList?) -> EntityChange<CollectionList>? {
        guard var after = current else { return before.map { EntityChange(before: $0, after: nil) } }
        guard let before else { return EntityChange(before: nil, after: after) }
        guard after != before else { return nil }
        after.modificationDate = now
        after.revision = Revision(sequence)
        return EntityChange(before: before, after: after)
    }

    /// Albums whose first or last capture date may have moved.
    private mutating func updateDates(_ changes: [EntityChange<Asset>]) throws {
        var albums: [ObjectID] = []
        var seen: Set<ObjectID> = []
        for change in changes {
            let (before, after) = (change.before?.memberships ?? [], change.after?.memberships ?? [])
            let isDateNew = change.before?.creationDate != change.after?.creationDate
            let ids = (before + after).map(\.collection)
            for id in ids where !seen.contains(id) {
                let wasMember = before.contains { $0.collection == id }
                let isMember = after.contains { $0.collection == id }
                guard wasMember != isMember || isDateNew else { continue }
                seen.insert(id)
                albums.append(id)
            }
        }
        let touched = Set(changes.map(\.id))
        for id in albums {
            guard var collection = try collection(id) else { continue }
            let ours = changes.compactMap(\.after).filter { $0.orderKey(in: id) != nil }.compactMap(\.creationDate)
            let others = try state.captureDates(of: id, excluding: touched)
            collection.startDate = [ours.min(), others?.lowerBound].compactMap { $0 }.min()
            collection.endDate = [ours.max(), others?.upperBound].compactMap { $0 }.max()
            if try self.collection(id) != collection { try set(collection) }
        }
    }
}
