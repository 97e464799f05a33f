import Contracts
import JSONValue
import Messaging
import PhotoModel

extension ChangeTransaction {
    mutating func create(_ request: ChangeRequest.CreateCollection) throws {
        var collection = AssetCollection(id: makeID(.assetCollection), revision: Revision(sequence))
        collection.title = try storable(request.title, "title")
        collection.parent = .root
        let last = try lastChildKeys[.root] ?? state.lastChildKey(of: .root)
        let key = OrderKey.between(last, nil)
        lastChildKeys[.root] = key
        collection.parentKey = key
        collection.creationDate = now
        collection.modificationDate = now
        collection.estimatedAssetCount = 0
        try changeChildren(of: .root, by: 1)
        try set(collection)
        try add(request.add, to: collection.id)
        try bind(request.ref, to: collection.id)
    }

    mutating func update(_ request: ChangeRequest.UpdateCollection) throws {
        var collection = try existingCollection(id(request.id))
        guard collection.type == .album else {
            throw Refusal.changeNotSupported.error(
                "\(collection.id) follows from facts of the assets and cannot be changed",
                ["id": .string(collection.id.text)]
            )
        }
        try require(request.ifRevision, collection.revision, of: collection.id)
        if let title = request.title { collection.title = try storable(title, "title") }
        try set(collection)
        for id in request.remove {
            guard let asset = try asset(id), asset.orderKey(in: collection.id) != nil else { continue }
            try removeFromAlbums(asset, [collection.id])
        }
        try add(request.add, to: collection.id)
    }

    mutating func deleteCollections(_ request: ChangeRequest.DeleteObjects) throws {
        for id in request.ids {
            let collection = try existingCollection(id)
            guard collection.type == .album else {
                throw Refusal.changeNotSupported.error("\(id) cannot be deleted", ["id": .string(id.text)])
            }
            for var asset in try members(of: id) {
                asset.memberships.removeAll { $0.collection == id }
                try set(asset)
            }
            try remove(collection: id)
            if let parent = collection.parent { try changeChildren(of: parent, by: -1) }
        }
    }

    /// Everyone who is in an album now; an album larger than a transaction is emptied in steps first.
    private func members(of id: ObjectID) throws -> [Asset] {
        let stored = try state.members(of: id, limit: limit + 1)
        guard stored.count <= limit else {
            throw Refusal.limitExceeded.error(
                "\(id) has more members than one transaction may touch (\(limit)); take them out in steps first",
                ["id": .string(id.text), "limit": JSON(limit)]
            )
        }
        let known = Set(stored)
        let new = assets.order.filter { !known.contains($0) }
        return try (stored + new).compactMap(asset).filter { $0.orderKey(in: id) != nil }
    }

    // MARK: Members

    /// Albums that one asset may be in: so few that one transaction can take it out of all of them.
    private var maxAlbums: Int { max(1, limit - 100) }

    /// Appends assets that are not members yet, in the order given (spec S-81).
    private mutating func add(_ references: [ObjectReference], to id: ObjectID) throws {
        var new: [Asset] = []
        var seen: Set<ObjectID> = []
        for reference in references {
            let asset = try existingAsset(self.id(reference))
            guard asset.orderKey(in: id) == nil, seen.insert(asset.id).inserted else { continue }
            guard asset.memberships.count < maxAlbums else {
                throw Refusal.limitExceeded.error(
                    "\(asset.id) is in \(maxAlbums) albums already; take it out of some",
                    ["id": .string(asset.id.text), "limit": JSON(maxAlbums)]
                )
            }
            new.append(asset)
        }
        guard !new.isEmpty, var collection = try collection(id) else { return }
        let last = try lastKeys[id] ?? state.lastMemberKey(of: id)
        for (var asset, key) in zip(new, OrderKey.keys(count: new.count, between: last, and: nil)) {
            asset.memberships.append(Membership(collection: id, key: key))
            lastKeys[id] = key
            try set(asset)
        }
        collection.estimatedAssetCount = (collection.estimatedAssetCount ?? 0) + new.count
        try set(collection)
    }

    /// Takes an asset out of albums.
    mutating func removeFromAlbums(_ asset: Asset, _ ids: [ObjectID]) throws {
        var asset = asset
        asset.memberships.removeAll { ids.contains($0.collection) }
        try set(asset)
        for id in ids {
            guard var collection = try collection(id) else { continue }
            collection.estimatedAssetCount = max(0, (collection.estimatedAssetCount ?? 0) - 1)
            if collection.keyAsset == asset.id { collection.keyAsset = nil }
            try set(collection)
        }
    }
}
