import Contracts
import PhotoModel

extension ChangeTransaction {
    // MARK: Create

    mutating func create(_ request: ChangeRequest.CreateAsset, _ prepared: PreparedChange) throws {
        let resources = prepared.resources
        guard let original = resources.first(where: { $0.type.isOriginal }) else {
            throw ChangeError.noOriginalSent
        }
        if request.ifDuplicate != .create, let id = try existingAsset(withOriginal: original.digest),
            try request.ifDuplicate == .useExisting || asset(id)?.trashedDate == nil
        {
            return try useExisting(id, for: request, resources)
        }
        guard let facts = original.facts, resources.allSatisfy({ $0.facts != nil }) else {
            throw MissingMetadataError()
        }
        var asset = try Asset(
            id: newID(.asset, request.id),
            revision: Revision(sequence),
            contentRevision: Revision(sequence)
        )
        asset.sourceType = request.sourceType
        asset.addedDate = now
        asset.modificationDate = now
        asset.contentModificationDate = now
        asset.originalFilename = original.originalFilename
        asset.setMetadata(facts)
        if !joinsBursts { (asset.burstIdentifier, asset.sharpness) = (nil, nil) }
        asset.resources = resources.map(\.resource)
        asset.markLivePhoto()
        asset.addEmbeddedVideo(facts.embeddedVideo)
        asset.isRecentlyAdded = recentSpan > 0
        if let burst = request.burst {
            asset.burstIdentifier = try storable(burst.identifier, "burst", maxBytes: TextLimit.burstIdentifier)
            asset.burstSelectionTypes = burst.selection
            // The program that imports the burst picks its frames.
            if burst.selection.contains(.autoPick) { asset.sharpness = nil }
        }
        try requireFitting(request.set, asset)
        try asset.apply(request.set)
        try asset.changeKeywords(adding: request.addKeywords, removing: request.removeKeywords)
        newOriginals[original.digest] = newOriginals[original.digest] ?? asset.id
        try set(asset)
        if let digest = facts.imageDigest { try addImage(digest, of: asset.id, request.ref) }
        if let burst = asset.burstIdentifier { bursts.insert(burst) }
        if request.burst?.isRepresentative == true || request.set.representsBurst == true {
            try chooseBurstRepresentative(asset.id)
        }
        if let new = request.edit {
            let edit = ChangeRequest.EditAsset(id: asset.id, render: new.render, adjustmentData: new.adjustmentData)
            try self.edit(edit, prepared.render, prepared.adjustment)
        }
        try bind(request.ref, to: asset.id)
    }

    /// Chooses a frame as the representative of its burst. ``settleBurst(_:)`` applies the choice unless the frame is
    /// in the trash, or is hidden and others are not.
    private mutating func chooseBurstRepresentative(_ id: ObjectID) throws {
        guard let burst = try existingAsset(id).burstIdentifier else {
            throw ChangeError.notInBurst(id)
        }
        chosenRepresentatives[burst, default: []].append(id)
    }

    private func frames(ofBurst identifier: String) throws -> [Asset] {
        let stored = try state.frames(ofBurst: identifier, limit: limit + 1)
        let known = Set(stored)
        let new = assets.order.filter { !known.contains($0) }
        return try (stored + new).compactMap(asset).filter { $0.burstIdentifier == identifier }
    }

    // MARK: Update

    mutating func update(_ request: ChangeRequest.UpdateAsset) throws {
        var asset = try existingAsset(id(request.id))
        try requireChangeable(asset)
        try require(request.ifRevision, asset.revision, of: asset.id)
        try requireFitting(request.set, asset)
        let wasHidden = asset.isHidden
        try asset.apply(request.set)
        try asset.changeKeywords(adding: request.addKeywords, removing: request.removeKeywords)
        try set(asset)
        if request.set.representsBurst == true { try chooseBurstRepresentative(asset.id) }
        if asset.isHidden != wasHidden || request.set.representsBurst == true, let burst = asset.burstIdentifier {
            bursts.insert(burst)
        }
    }

    /// Checks that properties of bursts and Live Photos are set only for such assets.
    ///
    /// - Throws: `request_not_supported`
    private func requireFitting(_ set: AssetPatch, _ asset: Asset) throws {
        if set.isUserPick != nil, asset.burstIdentifier == nil {
            throw ChangeError.pickOutsideBurst(asset.id)
        }
        if let effect = set.playbackVariation, effect != .none, !asset.mediaSubtypes.contains(.photoLive) {
            throw ChangeError.effectWithoutLivePhoto(asset.id, effect: effect.rawValue)
        }
    }

    private func requireChangeable(_ asset: Asset) throws {
        guard asset.sourceType != .typeiTunesSynced else {
            throw ChangeError.synced(asset.id)
        }
    }

    // MARK: Delete

    mutating func deleteAssets(_ request: ChangeRequest.ObjectIDs) throws {
        for id in IDList(request.ids).ids {
            let asset = try existingAsset(id)
            try requireChangeable(asset)
            try removeFromAlbums(asset, asset.memberships.map(\.collection))
            try remove(asset: id)
            if let burst = asset.burstIdentifier { bursts.insert(burst) }
        }
    }

    // MARK: Trash

    /// Moves assets to the trash. They keep their albums, but only fetches that ask for the trash find them (S-77,
    /// T-37).
    mutating func trash(_ request: ChangeRequest.ObjectIDs) throws {
        for id in request.ids {
            var asset = try existingAsset(id)
            try requireChangeable(asset)
            guard asset.trashedDate == nil else { continue }
            asset.trashedDate = max(now, retentionTime)
            try set(asset)
            if let burst = asset.burstIdentifier { bursts.insert(burst) }
        }
    }

    mutating func restore(_ request: ChangeRequest.ObjectIDs) throws {
        for id in request.ids {
            var asset = try existingAsset(id)
            guard asset.trashedDate != nil else { continue }
            asset.trashedDate = nil
            try set(asset)
            if let burst = asset.burstIdentifier { bursts.insert(burst) }
        }
    }

    /// Makes the changes that depend on the time: older assets are no longer recently added, and assets that have been
    /// in the trash long enough are deleted.
    ///
    /// - Parameters:
    ///   - retentionTime: the retention time, or the time of the wall clock if that is earlier
    ///   - trashSpan: the time for which assets stay in the trash, in microseconds
    ///   - count: the maximum number of assets
    /// - Returns: true if another transaction may be needed
    mutating func expireAssets(at retentionTime: Int64, trashSpan: Int64, max count: Int = .max) throws -> Bool {
        // The transaction also touches the albums and the new representatives of bursts.
        let stale = try state.recentlyAdded(before: retentionTime - recentSpan, limit: min(count, max(1, limit / 4)))
        for id in stale {
            guard var asset = try asset(id) else { continue }
            asset.isRecentlyAdded = false
            try set(asset)
        }
        guard stale.isEmpty else { return true }
        let old = try state.trashed(before: retentionTime - trashSpan, limit: min(count, 20))
        for id in old { try deleteAssets(ChangeRequest.ObjectIDs(ids: [id])) }
        return !old.isEmpty
    }

    /// Determines the representative (S-37) and the pick (S-38) of a burst, if it has none or they change. Called once
    /// for each burst that the transaction changed, after its last request.
    ///
    /// The representative is the frame that the transaction chose last, else the current one, else the earliest. A
    /// hidden frame represents the burst only if all are hidden, because a fetch would otherwise return none of them.
    /// The pick is the sharpest frame, unless the program that imported the burst picked. Frames in the trash are
    /// neither of them.
    mutating func settleBurst(_ burst: String) throws {
        let all = try frames(ofBurst: burst)
        let untrashed = all.filter { $0.trashedDate == nil }.sorted {
            ($0.creationDate ?? .max, $0.id) < ($1.creationDate ?? .max, $1.id)
        }
        let visible = untrashed.filter { !$0.isHidden }
        let candidates = visible.isEmpty ? untrashed : visible
        let chosen = chosenRepresentatives[burst, default: []].reversed().lazy.compactMap { id in
            candidates.first { $0.id == id }
        }
        let representative = chosen.first ?? candidates.first(where: \.representsBurst) ?? candidates.first
        let isPicked = untrashed.contains { $0.sharpness == nil && $0.burstSelectionTypes.contains(.autoPick) }
        let measured = isPicked ? [] : untrashed.filter { $0.sharpness != nil }
        let pick = measured.count > 1 ? measured.max { ($0.sharpness ?? 0) < ($1.sharpness ?? 0) } : nil
        for var frame in all {
            let before = frame
            frame.representsBurst = frame.id == representative?.id
            if frame.sharpness != nil {
                if frame.id == pick?.id {
                    frame.burstSelectionTypes.insert(.autoPick)
                } else {
                    frame.burstSelectionTypes.remove(.autoPick)
                }
            }
            if frame != before { try set(frame) }
        }
    }

    // MARK: Edit and revert

    mutating func edit(
        _ request: ChangeRequest.EditAsset,
        _ render: PreparedResource?,
        pairedVideo: PreparedResource? = nil,
        _ adjustment: PreparedResource?
    ) throws {
        var asset = try existingAsset(request.id)
        try requireChangeable(asset)
        try require(request.ifContentRevision, asset.contentRevision, of: asset.id)
        if let edit = request.publishedEdit { try apply(publishedEdit: edit, to: asset.id) }
        guard let render, let facts = render.facts, let adjustment else {
            throw ChangeError.incompleteEdit
        }
        guard asset.mediaType == facts.mediaType else {
            throw ChangeError.mediaTypeDiffers(asset.id, asset: asset.mediaType, render: facts.mediaType)
        }
        if let pairedVideo {
            guard asset.mediaType == .image, asset.resource(.pairedVideo) != nil else {
                throw ChangeError.noLivePhoto(asset.id)
            }
            guard pairedVideo.type == .fullSizePairedVideo else {
                throw ChangeError.pairedVideoIsNoVideo(asset.id)
            }
        }
        try asset.rebase(request)
        let replaced: Set<ResourceType> = [.fullSizePhoto, .fullSizeVideo, .fullSizePairedVideo, .adjustmentData]
        asset.resources.removeAll { replaced.contains($0.type) }
        asset.resources += [render, pairedVideo, adjustment].compactMap { $0?.resource }
        asset.contentType = facts.contentType
        asset.pixelWidth = facts.pixelWidth
        asset.pixelHeight = facts.pixelHeight
        asset.duration = facts.duration
        let format = request.adjustmentData
        asset.adjustmentFormatIdentifier = try storable(
            format.formatIdentifier,
            "formatIdentifier",
            maxBytes: TextLimit.formatIdentifier
        )
        asset.adjustmentFormatVersion = try storable(
            format.formatVersion,
            "formatVersion",
            maxBytes: TextLimit.formatVersion
        )
        asset.adjustmentDate = now
        contentChanged.insert(asset.id)
        try set(asset)
    }

    mutating func revert(_ request: ChangeRequest.RevertAsset) throws {
        var asset = try existingAsset(request.id)
        try requireChangeable(asset)
        try require(request.ifContentRevision, asset.contentRevision, of: asset.id)
        if let edit = request.publishedEdit { try apply(publishedEdit: edit, to: asset.id) }
        let isChosen = try asset.choose(request.base)
        guard asset.hasAdjustments || isChosen else { return }
        guard let original = asset.originalResource else {
            throw ChangeError.noOriginal(asset.id)
        }
        let edited: Set<ResourceType> = [
            .fullSizePhoto, .fullSizeVideo, .fullSizePairedVideo, .adjustmentData, .adjustmentBasePhoto,
            .adjustmentBasePairedVideo,
        ]
        asset.resources.removeAll { edited.contains($0.type) }
        asset.contentType = original.contentType
        asset.pixelWidth = original.pixelWidth
        asset.pixelHeight = original.pixelHeight
        asset.duration = original.duration ?? 0
        asset.adjustmentFormatIdentifier = nil
        asset.adjustmentFormatVersion = nil
        asset.adjustmentDate = nil
        contentChanged.insert(asset.id)
        try set(asset)
    }
}

extension ResourceType {
    /// True if an asset can be created from a file of this type.
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
            pixelHeight: facts?.pixelHeight ?? 0,
            duration: facts.flatMap { $0.mediaType == .video ? $0.duration : nil },
            damage: facts?.damage
        )
    }
}

extension Asset {
    /// Marks a photo with a paired video as a Live Photo.
    mutating func markLivePhoto() {
        guard resource(.photo) != nil, resource(.pairedVideo) != nil else { return }
        mediaSubtypes.formUnion(.photoLive)
        playbackStyle = .livePhoto
    }

    /// Adds the video that a photo's file contains, if the asset has none.
    mutating func addEmbeddedVideo(_ video: ExtractedMetadata.MotionPhotoVideo?) {
        guard let video, let photo = resource(.photo), resource(.pairedVideo) == nil,
            video.offset >= 0, video.size > 0, video.offset <= photo.size - video.size
        else { return }
        resources.append(
            AssetResource(
                type: .pairedVideo,
                digest: photo.digest,
                size: video.size,
                offset: video.offset,
                contentType: video.contentType,
                pixelWidth: video.pixelWidth,
                pixelHeight: video.pixelHeight,
                duration: video.duration
            )
        )
        markLivePhoto()
    }

    /// Sets the properties that were read from the file.
    mutating func setMetadata(_ facts: ExtractedMetadata) {
        mediaType = facts.mediaType
        mediaSubtypes = facts.mediaSubtypes
        playbackStyle = facts.playbackStyle
        contentType = facts.contentType
        pixelWidth = facts.pixelWidth
        pixelHeight = facts.pixelHeight
        duration = facts.duration
        creationDate = facts.creationDate
        creationOffset = facts.creationOffset
        hasOnlyModificationDate = facts.isModificationDate
        isCreationOffsetDerived = facts.isOffsetDerived
        location = facts.location
        burstIdentifier = facts.burstIdentifier
        sharpness = facts.sharpness
        rating = facts.rating
        caption = facts.caption
        keywords = facts.keywords
        cameraMake = facts.cameraMake
        cameraModel = facts.cameraModel
        lensModel = facts.lensModel
        metadata = facts.metadata
    }

    /// Removes keywords, and then adds others at the end. Keywords to add that are already present and keywords to
    /// remove that are absent are ignored (T-27).
    ///
    /// - Throws: `limit_exceeded` if there are too many, `invalid_params` if one contains U+0000 or is too long as
    ///   stored
    mutating func changeKeywords(adding added: [String], removing removed: [String]) throws {
        guard !added.isEmpty || !removed.isEmpty else { return }
        let leaving = Set(removed.map(nfc))
        try apply(AssetPatch(keywords: keywords.filter { !leaving.contains($0) } + added))
        guard keywords.count <= 1024 else {
            throw ChangeError.tooManyKeywords(limit: 1024)
        }
    }

    /// Sets the properties that the patch contains.
    ///
    /// - Throws: `invalid_params` if a text contains U+0000 or is too long as stored
    mutating func apply(_ patch: AssetPatch) throws {
        if let value = patch.isFavorite { isFavorite = value }
        if let value = patch.isHidden { isHidden = value }
        if let value = patch.creationDate {
            creationDate = value
            hasOnlyModificationDate = false
            if value == nil { (creationOffset, isCreationOffsetDerived) = (nil, false) }
        }
        if let value = patch.creationOffset { (creationOffset, isCreationOffsetDerived) = (value, false) }
        if let value = patch.location { location = value }
        if let value = patch.caption {
            let text = try value.map { try storable($0, "caption", maxBytes: TextLimit.caption) }
            caption = text?.isEmpty == true ? nil : text
        }
        if let value = patch.rating { rating = value }
        if let value = patch.isUserPick {
            if value { burstSelectionTypes.insert(.userPick) } else { burstSelectionTypes.remove(.userPick) }
        }
        if let value = patch.playbackVariation { playbackVariation = value }
        if let value = patch.keywords {
            var seen: Set<String> = []
            keywords = try value.map { try storable($0, "keywords", maxBytes: TextLimit.keyword) }
                .filter { !$0.isEmpty && seen.insert($0).inserted }
        }
    }
}
