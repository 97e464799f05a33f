import Contracts
import JSONValue
import Messaging
import PhotoModel

extension ChangeTransaction {
    // MARK: Create

    mutating func create(_ request: ChangeRequest.CreateAsset, _ resources: [PreparedResource]) throws {
        guard let original = resources.first(where: { $0.type.isOriginal }) else {
            throw Refusal.invalidParams.error("an asset needs a resource of the type photo")
        }
        if request.ifDuplicate == .useExisting {
            if let id = try existingAsset(withOriginal: original.digest) {
                try complete(id, with: resources)
                return try bind(request.ref, to: id, isDuplicate: true)
            }
        }
        guard let facts = original.facts, resources.allSatisfy({ $0.facts != nil }) else { throw FactsNeeded() }
        var asset = Asset(
            id: makeID(.asset),
            revision: Revision(sequence),
            contentRevision: Revision(sequence)
        )
        asset.sourceType = request.sourceType
        asset.addedDate = now
        asset.modificationDate = now
        asset.contentModificationDate = now
        asset.originalFilename = original.originalFilename
        asset.take(facts)
        asset.resources = resources.map(\.resource)
        asset.markLivePhoto()
        try asset.apply(request.set)
        if let burst = asset.burstIdentifier { asset.representsBurst = try !hasRepresentative(burst) }
        newOriginals[original.digest] = newOriginals[original.digest] ?? asset.id
        try set(asset)
        try bind(request.ref, to: asset.id)
    }

    /// Gives an asset that is there already the raw file or the film of a Live Photo that it lacks.
    private mutating func complete(_ id: ObjectID, with resources: [PreparedResource]) throws {
        var asset = try existingAsset(id)
        let new = resources.filter { !$0.type.isOriginal && asset.resource($0.type) == nil }
        guard !new.isEmpty else { return }
        guard new.allSatisfy({ $0.facts != nil }) else { throw FactsNeeded() }
        asset.resources += new.map(\.resource)
        asset.markLivePhoto()
        try set(asset)
    }

    private func existingAsset(withOriginal digest: String) throws -> ObjectID? {
        if let stored = try state.asset(withOriginal: digest), try asset(stored) != nil { return stored }
        guard let new = newOriginals[digest], try asset(new) != nil else { return nil }
        return new
    }

    private func frames(ofBurst identifier: String) throws -> [Asset] {
        let stored = try state.frames(ofBurst: identifier, limit: limit + 1)
        let known = Set(stored)
        let new = assets.order.filter { !known.contains($0) }
        return try (stored + new).compactMap(asset).filter { $0.burstIdentifier == identifier }
    }

    private func hasRepresentative(_ burst: String) throws -> Bool {
        try frames(ofBurst: burst).contains(where: \.representsBurst)
    }

    // MARK: Update

    mutating func update(_ request: ChangeRequest.UpdateAsset) throws {
        var asset = try existingAsset(id(request.id))
        try requireChangeable(asset)
        try require(request.ifRevision, asset.revision, of: asset.id)
        try asset.apply(request.set)
        try set(asset)
    }

    private func requireChangeable(_ asset: Asset) throws {
        guard asset.sourceType != .typeiTunesSynced else {
            throw Refusal.changeNotSupported.error(
                "\(asset.id) was synced from elsewhere and cannot be changed here",
                ["id": .string(asset.id.text)]
            )
        }
    }

    // MARK: Delete

    mutating func deleteAssets(_ request: ChangeRequest.DeleteObjects) throws {
        for id in request.ids {
            let asset = try existingAsset(id)
            try requireChangeable(asset)
            try removeFromAlbums(asset, asset.memberships.map(\.collection))
            try remove(asset: id)
            if asset.representsBurst, let burst = asset.burstIdentifier { try chooseRepresentative(burst) }
        }
    }

    /// The earliest frame left stands for the burst (spec S-37).
    private mutating func chooseRepresentative(_ burst: String) throws {
        let left = try frames(ofBurst: burst)
        guard !left.contains(where: \.representsBurst),
            var next = left.min(by: { ($0.creationDate ?? .max, $0.id) < ($1.creationDate ?? .max, $1.id) })
        else { return }
        next.representsBurst = true
        try set(next)
    }

    // MARK: Edit and revert

    mutating func edit(
        _ request: ChangeRequest.EditAsset,
        _ render: PreparedResource?,
        _ adjustment: PreparedResource?
    ) throws {
        var asset = try existingAsset(request.id)
        try requireChangeable(asset)
        try require(request.ifContentRevision, asset.contentRevision, of: asset.id)
        if let edit = request.publishedEdit { try apply(publishedEdit: edit, to: asset.id) }
        guard let render, let facts = render.facts, let adjustment else {
            throw Refusal.invalidParams.error("an edit needs both render and adjustmentData")
        }
        guard asset.mediaType == .image else {
            throw Refusal.requestNotSupported.error("\(asset.id) is no still picture", ["id": .string(asset.id.text)])
        }
        // Whoever continues edits of its own format began from the same base; another format began from what was shown
        // (spec section 9).
        if let format = asset.adjustmentFormatIdentifier, format != request.adjustmentData.formatIdentifier,
            var base = asset.resource(.fullSizePhoto)
        {
            base.type = .adjustmentBasePhoto
            asset.resources.removeAll { $0.type == .adjustmentBasePhoto }
            asset.resources.append(base)
        }
        asset.resources.removeAll { $0.type == .fullSizePhoto || $0.type == .adjustmentData }
        asset.resources += [render, adjustment].map(\.resource)
        asset.contentType = facts.contentType
        asset.pixelWidth = facts.pixelWidth
        asset.pixelHeight = facts.pixelHeight
        asset.adjustmentFormatIdentifier = request.adjustmentData.formatIdentifier
        asset.adjustmentFormatVersion = request.adjustmentData.formatVersion
        asset.adjustmentDate = now
        contentChanged.insert(asset.id)
        try set(asset)
    }

    mutating func revert(_ request: ChangeRequest.RevertAsset) throws {
        var asset = try existingAsset(request.id)
        try requireChangeable(asset)
        try require(request.ifContentRevision, asset.contentRevision, of: asset.id)
        guard asset.hasAdjustments else { return }
        guard let original = asset.originalResource else {
            throw Refusal.missingResource.error("\(asset.id) has no original", ["id": .string(asset.id.text)])
        }
        let edited: Set<ResourceType> = [.fullSizePhoto, .fullSizeVideo, .adjustmentData, .adjustmentBasePhoto]
        asset.resources.removeAll { edited.contains($0.type) }
        asset.contentType = original.contentType
        asset.pixelWidth = original.pixelWidth
        asset.pixelHeight = original.pixelHeight
        asset.adjustmentFormatIdentifier = nil
        asset.adjustmentFormatVersion = nil
        asset.adjustmentDate = nil
        contentChanged.insert(asset.id)
        try set(asset)
    }
}

extension ResourceType {
    /// Whether these bytes are what an asset began with.
    var isOriginal: Bool { self == .photo || self == .video || self == .audio }
}

extension PreparedResource {
    var resource: AssetResource {
        AssetResource(
            type: type,
            digest: digest,
            size: size,
            contentType: facts?.contentType ?? "public.data",
            originalFilename: originalFilename,
            pixelWidth: facts?.pixelWidth ?? 0,
            pixelHeight: facts?.pixelHeight ?? 0
        )
    }
}

extension Asset {
    /// A still with a film beside it is a Live Photo.
    mutating func markLivePhoto() {
        guard resource(.photo) != nil, resource(.pairedVideo) != nil else { return }
        mediaSubtypes.formUnion(.photoLive)
        playbackStyle = .livePhoto
    }

    /// Takes over what was read from the bytes.
    mutating func take(_ facts: PictureFacts) {
        mediaType = facts.mediaType
        mediaSubtypes = facts.mediaSubtypes
        playbackStyle = facts.playbackStyle
        contentType = facts.contentType
        pixelWidth = facts.pixelWidth
        pixelHeight = facts.pixelHeight
        duration = facts.duration
        creationDate = facts.creationDate
        creationOffset = facts.creationOffset
        location = facts.location
        burstIdentifier = facts.burstIdentifier
        rating = facts.rating
        caption = facts.caption
        keywords = facts.keywords
        cameraMake = facts.cameraMake
        cameraModel = facts.cameraModel
        lensModel = facts.lensModel
    }

    /// Sets what the patch names.
    mutating func apply(_ patch: AssetPatch) throws {
        if let value = patch.isFavorite { isFavorite = value }
        if let value = patch.isHidden { isHidden = value }
        if let value = patch.creationDate {
            creationDate = value
            if value == nil { creationOffset = nil }
        }
        if let value = patch.creationOffset { creationOffset = value }
        if let value = patch.location { location = value }
        if let value = patch.caption {
            let text = try value.map { try storable($0, "caption") }
            caption = text?.isEmpty == true ? nil : text
        }
        if let value = patch.rating { rating = value }
        if let value = patch.keywords {
            var seen: Set<String> = []
            keywords = try value.map { try storable($0, "keywords") }.filter { !$0.isEmpty && seen.insert($0).inserted }
        }
    }
}

/// Text as it is stored: normal form C, and no zero character, which SQLite ends text at.
func storable(_ text: String, _ name: String) throws -> String {
    guard !text.utf8.contains(0) else {
        throw Refusal.invalidParams.error("\(name) may not hold the character U+0000", ["parameter": .string(name)])
    }
    return nfc(text)
}
