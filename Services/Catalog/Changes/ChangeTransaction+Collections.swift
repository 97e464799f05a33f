import PhotoModel

extension ChangeTransaction {
    mutating func create(_ request: ChangeRequest.CreateCollection) throws {
        var collection = try AssetCollection(id: newID(.assetCollection, request.id), revision: Revision(sequence))
        collection.title = try storable(request.title, "title", maxBytes: TextLimit.title)
        let parent = try request.parent.map { try existingFolder(id($0)).id } ?? .root
        collection.parent = parent
        collection.parentKey = try nextChildKey(in: parent)
        collection.creationDate = now
        collection.modificationDate = now
        collection.estimatedAssetCount = 0
        try changeChildren(of: parent, by: 1)
        try set(collection)
        try add(request.add.map { try id($0) }, to: collection.id)
        try bind(request.ref, to: collection.id)
    }

    mutating func update(_ request: ChangeRequest.UpdateCollection, _ snapshot: SnapshotList?) throws {
        var collection = try existingCollection(id(request.id))
        guard collection.type == .album else {
            throw ChangeError.derived(collection.id)
        }
        try require(request.ifRevision, collection.revision, of: collection.id)
        if let title = request.title {
            collection.title = try storable(title, "title", maxBytes: TextLimit.title)
        }
        try set(collection)
        try removeMembers(request.remove, of: collection.id)
        try add(request.add.map { try id($0) }, to: collection.id)
        try apply(request.edits, snapshot, to: collection.id)
        if let keyAsset = request.keyAsset, var collection = try self.collection(collection.id) {
            if let keyAsset, try asset(keyAsset)?.orderKey(in: collection.id) == nil {
                throw ChangeError.keyAssetNotMember(keyAsset)
            }
            collection.keyAsset = keyAsset
            try set(collection)
        }
    }

    mutating func deleteCollections(_ request: ChangeRequest.ObjectIDs) throws {
        for id in IDList(request.ids).ids {
            let collection = try existingCollection(id)
            guard collection.type == .album else {
                throw ChangeError.undeletable(id)
            }
            for var asset in try members(of: id) {
                asset.memberships.removeAll { $0.collection == id }
                try set(asset)
            }
            try remove(collection: id)
            if let parent = collection.parent { try changeChildren(of: parent, by: -1) }
        }
    }

    /// Returns the current members of an album.
    ///
    /// - Throws: `limit_exceeded` if the album has more members than a transaction may touch; it has to be emptied in
    ///   steps first
    private func members(of id: ObjectID) throws -> [Asset] {
        let stored = try state.members(of: id, limit: limit + 1)
        guard stored.count <= limit else {
            throw ChangeError.tooManyMembers(id, limit: limit)
        }
        let known = Set(stored)
        let new = assets.order.filter { !known.contains($0) }
        return try (stored + new).compactMap(asset).filter { $0.orderKey(in: id) != nil }
    }

    // MARK: Members

    /// The maximum number of albums of one asset; one transaction can remove it from all of them.
    private var maxAlbums: Int { max(1, limit - 100) }

    /// Appends the assets that are not members yet, in the given order (S-81).
    private mutating func add(_ ids: [ObjectID], to id: ObjectID) throws {
        var new: [Asset] = []
        for asset in IDList(ids).ids {
            let asset = try existingAsset(asset)
            guard asset.orderKey(in: id) == nil else { continue }
            try requireJoinable(asset)
            new.append(asset)
        }
        guard !new.isEmpty else { return }
        let last = try lastKeys[id] ?? state.lastMemberKey(of: id)
        for (var asset, key) in zip(new, OrderKey.keys(count: new.count, after: last)) {
            asset.memberships.append(Membership(collection: id, key: key))
            lastKeys[id] = key
            try set(asset)
        }
    }

    /// Checks that an asset may join another album (T-17).
    ///
    /// - Throws: `change_not_supported`, `limit_exceeded`
    private func requireJoinable(_ asset: Asset) throws {
        guard asset.canJoinCollections else {
            throw ChangeError.cannotJoinAlbums(asset.id)
        }
        guard asset.memberships.count < maxAlbums else {
            throw ChangeError.tooManyAlbums(asset.id, limit: maxAlbums)
        }
    }

    private mutating func removeMembers(_ ids: [ObjectID], of collection: ObjectID) throws {
        let members = try members(of: collection, among: ids)
        let unread = ids.filter { members.contains($0) && assets.state(of: $0) == nil }
        if unread.count > 1 { try state.prefetch(Array(unread.prefix(limit))) }
        for id in ids where members.contains(id) {
            guard let asset = try asset(id), asset.orderKey(in: collection) != nil else { continue }
            try removeFromAlbums(asset, [collection])
        }
    }

    /// Returns the given objects that are members of an album in the current state of this transaction. Their assets
    /// are not read, because many of them may not be members.
    private func members(of collection: ObjectID, among ids: [ObjectID]) throws -> Set<ObjectID> {
        var untouched: [ObjectID] = []
        var members: Set<ObjectID> = []
        for id in ids {
            if let asset = assets.state(of: id) {
                if asset?.orderKey(in: collection) != nil { members.insert(id) }
            } else {
                untouched.append(id)
            }
        }
        guard !untouched.isEmpty else { return members }
        return try members.union(state.members(of: collection, among: untouched))
    }

    /// Removes an asset from albums.
    mutating func removeFromAlbums(_ asset: Asset, _ ids: [ObjectID]) throws {
        var asset = asset
        asset.memberships.removeAll { ids.contains($0.collection) }
        try set(asset)
    }

    // MARK: Member edits

    private mutating func apply(_ edits: [MemberEdit], _ snapshot: SnapshotList?, to id: ObjectID) throws {
        guard edits.contains(where: \.hasIndexes) else {
            for edit in edits {
                switch edit {
                case .add(let members): try add(members.map { try self.id($0) }, to: id)
                case .remove(let ids): try removeMembers(ids, of: id)
                case .insert, .move, .replace, .removeAt: break
                }
            }
            return
        }
        // No client can have a result of a list that this transaction has created.
        let clientList = try state.collection(id) == nil ? SnapshotList(newMembers(of: id)) : snapshot
        let plan = try MemberEditPlan(edits, clientList) { reference in
            try self.id(reference)
        } members: { ids in
            try members(of: id, among: ids)
        }
        try removeMembers(plan.removed(), of: id)
        for run in try plan.runs() {
            let anchor = try plan.neighbour(before: run) { ids in
                let members = try self.members(of: id, among: ids)
                return ids.last(where: members.contains)
            }
            let lower = try anchor.flatMap { try asset($0)?.orderKey(in: id) }
            let members = Set(run.members)
            let upper = try memberKey(after: lower, in: id, passingOver: members)
            let keys = try OrderKey.keys(count: run.members.count, between: lower, and: upper)
            try checkLength(keys, of: id)
            for (member, key) in zip(run.members, keys) {
                var asset = try existingAsset(member)
                if asset.orderKey(in: id) == nil { try requireJoinable(asset) }
                asset.memberships.removeAll { $0.collection == id }
                asset.memberships.append(Membership(collection: id, key: key))
                if upper == nil { lastKeys[id] = max(key, lastKeys[id] ?? key) }
                try set(asset)
            }
        }
    }

    /// Returns the members of an album that this transaction has created, in their order.
    private func newMembers(of id: ObjectID) throws -> [ObjectID] {
        try assets.order.compactMap { member in try asset(member)?.orderKey(in: id).map { (member, $0) } }
            .sorted { $0.1 < $1.1 }.map(\.0)
    }

    /// Returns the next order key in use after another one, in the current state of this transaction; nil if there is
    /// none.
    private func memberKey(
        after lower: OrderKey?,
        in id: ObjectID,
        passingOver moving: Set<ObjectID>
    ) throws -> OrderKey? {
        var stored = try state.member(after: lower, in: id)
        // Members that are about to move, or that this transaction has moved, do not limit the range.
        while let found = stored, try moving.contains(found.id) || asset(found.id)?.orderKey(in: id) != found.key {
            stored = try state.member(after: found.key, in: id)
        }
        let touched = assets.order.lazy.filter { !moving.contains($0) }
            .compactMap { (try? asset($0))??.orderKey(in: id) }
            .filter { key in lower.map { $0 < key } ?? true }
        return [touched.min(), stored?.key].compactMap { $0 }.min()
    }
}

extension ChangeTransaction {
    func checkLength(_ keys: [OrderKey], of id: ObjectID) throws {
        guard keys.contains(where: { $0.text.utf8.count > OrderKey.maxBytes }) else { return }
        throw ChangeError.orderKeyTooLong(id)
    }
}
