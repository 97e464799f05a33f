import Basics
import Contracts
import Imaging
import JSONValue
import PhotoModel

extension EditPlan {
    /// Returns the source that an edit of a video renders, and its list.
    ///
    /// No base of a video is kept (S-87). An edit of this editor starts from the original again, unless it was made
    /// over another program's render: then, and if the last edit is another program's, it starts from the current
    /// version.
    static func video(
        _ edit: ApplyEdit,
        of asset: Asset,
        _ data: Bytes?
    ) throws(RPCError) -> (base: EditBase, source: AssetResource, list: AdjustmentList) {
        let original = try original(of: asset)
        guard asset.hasAdjustments else {
            let list = AdjustmentList(operations: try Self.operations(edit, onto: original))
            return (.original, original, list)
        }
        // A list of another program cannot be extended.
        let current = asset.isVideoOfThisEditor || edit.mode == .append ? try currentList(of: asset, data: data) : nil
        guard let current, !current.isOnRender else {
            let onRender = try Self.operations(edit, onto: asset.currentResource)
            let list = AdjustmentList(operations: onRender, isOnRender: true)
            return (.current, asset.currentResource ?? original, list)
        }
        // Options in pixels refer to the version that the operations apply to.
        let added = try Self.operations(edit, onto: edit.mode == .append ? asset.currentResource : original)
        let all = edit.mode == .append ? current.operations + added : added
        guard all.count <= AdjustmentList.maximumCount else {
            throw .tooManyOperations(all.count, of: asset, current: current.operations.count)
        }
        return (.original, original, AdjustmentList(operations: all))
    }

    /// - Throws: `request_not_supported` with the name of an operation that the asset's media type does not have
    static func requireSupported(_ list: AdjustmentList, for asset: Asset) throws(RPCError) {
        if asset.mediaType == .video {
            if let kind = VideoAdjustments.unsupported(list) { throw .operationOfPhotos(kind, asset) }
            return
        }
        // The list of a Live Photo cannot change the length of its video, and the volume is `audioVolume`.
        let videoOperation = list.operations.first { $0.kind.stage == .video && !$0.isNeutral }
        if let videoOperation { throw .operationOfVideos(videoOperation.kind, asset) }
    }
}

extension Asset {
    /// True for a video whose last edit this editor made.
    var isVideoOfThisEditor: Bool {
        mediaType == .video && adjustmentFormatIdentifier == AdjustmentList.formatIdentifier
            && adjustmentFormatVersion == AdjustmentList.formatVersion
    }
}
