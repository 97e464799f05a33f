import Contracts
import Imaging
import JSONValue
import PhotoModel

extension EditPlan {
    /// Returns the video that belongs to a version of a Live Photo; nil if the asset is not a Live Photo.
    static func pairedVideo(of asset: Asset, _ base: EditBase) -> AssetResource? {
        guard asset.mediaType == .image, let original = asset.resource(.pairedVideo) else { return nil }
        return switch base {
        case .original: original
        case .previous: asset.resource(.adjustmentBasePairedVideo) ?? original
        case .current: asset.resource(.fullSizePairedVideo) ?? original
        }
    }

    /// Adds the video of a Live Photo if the list applies to it. Without a video, the list is one of a photo.
    ///
    /// - Throws: `request_not_supported` for an operation that videos do not have, `invalid_params` for a key frame
    ///   after the video's end
    mutating func addPairedVideo(of asset: Asset) throws(RPCError) {
        guard let options = adjustments.livePhoto else { return }
        guard let pairedVideo = Self.pairedVideo(of: asset, base) else {
            adjustments.livePhoto = nil
            return
        }
        try Self.requireSupported(adjustments.operations, options, on: pairedVideo, of: asset)
        self.pairedVideo = pairedVideo
    }

    static func requireSupported(
        _ operations: [Adjustment],
        _ options: LivePhotoAdjustment,
        on pairedVideo: AssetResource,
        of asset: Asset
    ) throws(RPCError) {
        if let kind = VideoAdjustments.unsupported(AdjustmentList(operations: operations)) {
            throw .operationOfStills(kind, asset)
        }
        if let time = options.keyFrame, let duration = pairedVideo.duration, duration > 0, time > duration {
            throw .keyFrameAfterEnd(time, duration: duration)
        }
    }
}

extension AdjustmentList {
    /// The list for a Live Photo's video: the same operations, and its volume, which does not count as one of them.
    var ofPairedVideo: AdjustmentList {
        AdjustmentList(
            operations: operations,
            livePhoto: livePhoto?.audioVolume.map { LivePhotoAdjustment(audioVolume: $0) }
        )
    }
}
