import Contracts
import PhotoModel

/// The import of bytes that an asset already has.
extension ChangeTransaction {
    /// Uses an existing asset that has the bytes of a new one: restores it from the trash, adds the resources that it
    /// lacks and sets the properties of the request, so that the placeholder is an asset as requested (S-09, P-23).
    ///
    /// The reply names the members of the request that have no effect on an existing asset.
    mutating func useExisting(
        _ id: ObjectID,
        for request: ChangeRequest.CreateAsset,
        _ resources: [PreparedResource]
    ) throws {
        try complete(id, with: resources)
        let asset = try existingAsset(id)
        if asset.trashedDate != nil {
            try restore(ChangeRequest.ObjectIDs(ids: [id]))
            restored.append(id)
        }
        var ignored: [String] = []
        let own = Set(asset.resources.map(\.digest))
        if resources.contains(where: { !own.contains($0.digest) }) { ignored.append("resources") }
        ignored += try set(request, ofExisting: asset)
        if request.sourceType != asset.sourceType { ignored.append("sourceType") }
        if let burst = request.burst,
            nfc(burst.identifier) != asset.burstIdentifier || burst.isRepresentative && !asset.representsBurst
                || !burst.selection.isSubset(of: asset.burstSelectionTypes)
        {
            ignored.append("burst")
        }
        if request.sidecar != nil { ignored.append("sidecar") }
        if request.edit != nil { ignored.append("edit") }
        if !ignored.isEmpty {
            self.ignored.append(PerformChanges.Ignored(request: requestIndex, ref: request.ref, members: ignored))
        }
        try bind(request.ref, to: id, isDuplicate: true)
    }

    /// Sets properties of an existing asset, and changes its keywords.
    ///
    /// - Returns: the names of the members with values that have no effect on the asset
    private mutating func set(_ request: ChangeRequest.CreateAsset, ofExisting asset: Asset) throws -> [String] {
        var update = ChangeRequest.UpdateAsset(
            id: .id(asset.id),
            set: request.set,
            addKeywords: request.addKeywords,
            removeKeywords: request.removeKeywords
        )
        let nothing = ChangeRequest.UpdateAsset(id: update.id)
        guard asset.sourceType != .typeiTunesSynced else {
            return [
                ("set", update.set != nothing.set), ("addKeywords", !update.addKeywords.isEmpty),
                ("removeKeywords", !update.removeKeywords.isEmpty),
            ].filter(\.1).map(\.0)
        }
        var ignored: [String] = []
        if update.set.isUserPick != nil || update.set.representsBurst == true, asset.burstIdentifier == nil {
            (update.set.isUserPick, update.set.representsBurst) = (nil, nil)
            ignored.append("set")
        }
        if update != nothing { try self.update(update) }
        return ignored
    }

    /// Adds the resources that an existing asset lacks: the RAW file, or the video of a Live Photo. A synced asset is
    /// not changed.
    private mutating func complete(_ id: ObjectID, with resources: [PreparedResource]) throws {
        var asset = try existingAsset(id)
        let new = resources.filter { !$0.type.isOriginal && asset.resource($0.type) == nil }
        guard !new.isEmpty, asset.sourceType != .typeiTunesSynced else { return }
        guard new.allSatisfy({ $0.facts != nil }) else { throw MissingMetadataError() }
        asset.resources += new.map(\.resource)
        asset.markLivePhoto()
        try set(asset)
    }

    /// Returns an asset with these bytes, preferably one that is not in the trash.
    func existingAsset(withOriginal digest: String) throws -> ObjectID? {
        var stored = try state.assets(withOriginal: digest, limit: 1)
        if let first = stored.first, case .some = assets.state(of: first) {
            // Only assets that this transaction has deleted or moved to the trash can precede the first other one.
            stored = try state.assets(withOriginal: digest, limit: assets.count + 1)
        }
        let existing = try (stored + [newOriginals[digest]].compactMap { $0 }).compactMap(asset)
        return (existing.first { $0.trashedDate == nil } ?? existing.first)?.id
    }
}

extension ChangeTransaction {
    /// Records the digest of a new asset's image data, and the other assets with the same image data.
    mutating func addImage(_ digest: [UInt8], of id: ObjectID, _ ref: String?) throws {
        defer { imageDigests.append(ImageDigest(asset: id, bytes: digest)) }
        guard reportsSameImage else { return }
        let limit = PerformChanges.SameImage.maxAssets
        let new = imageDigests.lazy.filter { $0.bytes == digest }.map(\.asset)
        let others = try state.assets(withImage: digest, limit: limit).filter { try asset($0) != nil } + new
        guard !others.isEmpty else { return }
        let found = PerformChanges.SameImage(request: requestIndex, ref: ref, assets: Array(others.prefix(limit)))
        sameImage.append(found)
    }
}
