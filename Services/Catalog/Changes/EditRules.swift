import PhotoModel

extension Asset {
    /// Stores the input that an edit began with as the asset's adjustment base.
    ///
    /// An input token names that input and is compared with the asset. Without a token, an edit that continues its own
    /// format began with the existing base, and an edit of another format began with the current render.
    ///
    /// - Throws: `conflict` if the pixels have changed since the token was made, `invalid_params` if the token is of
    ///   another asset
    mutating func rebase(_ edit: ChangeRequest.EditAsset) throws {
        guard let token = edit.inputToken else {
            if let format = adjustmentFormatIdentifier, format != edit.adjustmentData.formatIdentifier {
                useRenderAsBase()
            }
            return
        }
        guard token.asset == id else {
            throw ChangeError.foreignInputToken(of: token.asset, edit: id)
        }
        guard token.contentRevision == contentRevision,
            resources(of: token.base).contains(where: { $0.digest == token.digest })
        else {
            throw ChangeError.outdatedInputToken(id, revision: revision, contentRevision: contentRevision)
        }
        switch token.base {
        case .original: useOriginalAsBase(token.digest)
        case .previous: break
        case .current: useRenderAsBase()
        }
    }

    /// Makes an original the base. The current original needs no copy as base. The other one of a RAW pair does, since
    /// an edit is resumed from the base.
    private mutating func useOriginalAsBase(_ digest: String) {
        resources.removeAll { $0.type == .adjustmentBasePhoto || $0.type == .adjustmentBasePairedVideo }
        guard digest != originalResource?.digest,
            var base = resources(of: .original).first(where: { $0.digest == digest })
        else { return }
        base.type = .adjustmentBasePhoto
        resources.append(base)
    }

    private mutating func useRenderAsBase() {
        guard var base = resource(.fullSizePhoto) else { return }
        base.type = .adjustmentBasePhoto
        resources.removeAll { $0.type == .adjustmentBasePhoto || $0.type == .adjustmentBasePairedVideo }
        resources.append(base)
        guard var video = resource(.fullSizePairedVideo) else { return }
        video.type = .adjustmentBasePairedVideo
        resources.append(video)
    }

    /// Makes one of two originals the current one (T-26).
    ///
    /// - Returns: false if no choice was requested or it is the current one already
    /// - Throws: `request_not_supported` if the asset has no such original
    mutating func choose(_ choice: OriginalChoice?) throws -> Bool {
        guard let choice else { return false }
        guard let chosen = originalChoices[choice] else {
            throw ChangeError.noOriginalChoice(id)
        }
        guard chosen.type != .photo else { return false }
        for index in resources.indices {
            switch resources[index].type {
            case .photo: resources[index].type = .alternatePhoto
            case .alternatePhoto: resources[index].type = .photo
            default: break
            }
        }
        return true
    }
}
