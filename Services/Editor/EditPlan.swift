import Basics
import Contracts
import JSONValue
import PhotoModel

/// The source and the operations that an edit renders.
struct EditPlan: Sendable, Equatable {
    /// The image that the operations apply to.
    var source: AssetResource
    /// The version of the asset that the source is; it becomes the base of the edit.
    var base: EditBase
    var adjustments: AdjustmentList
    /// The video that the operations apply to as well; nil if only the image is edited (T-48).
    var pairedVideo: AssetResource?
    /// The engine that the request, its list or the current edit names; nil for the editor's setting.
    var engine: RenderEngine?
    /// The content revision that the edit replaces.
    var contentRevision: Revision
    /// The revision of the whole asset, if the edit depends on it.
    var ifRevision: Revision?

    /// Returns true if the plan needs the asset's current adjustment data.
    static func needsAdjustmentData(_ mode: AdjustmentMode, of asset: Asset) -> Bool {
        asset.hasAdjustments && (mode == .append || asset.isVideoOfThisEditor)
    }

    /// - Parameters:
    ///   - edit: the requested edit
    ///   - asset: the asset as it is now
    ///   - data: the bytes of its adjustment data, if ``needsAdjustmentData(_:of:)`` returns true
    ///   - base: the version to start from; nil for the one that ``input(of:)`` returns
    /// - Throws: `conflict` if the asset's revision is not the expected one, `missing_resource` if there is no image,
    ///   `request_not_supported` if the current edit cannot be extended, `limit_exceeded` for too many operations
    init(
        _ edit: ApplyEdit,
        of asset: Asset,
        adjustmentData data: Bytes?,
        from base: (base: EditBase, source: AssetResource)? = nil
    ) throws(RPCError) {
        if let expected = edit.ifContentRevision, expected != asset.contentRevision {
            throw .conflict(asset, expected: expected)
        }
        if let expected = edit.ifRevision, expected != asset.revision {
            throw .conflict(asset, expected: expected)
        }
        ifRevision = edit.ifRevision
        contentRevision = asset.contentRevision
        engine = edit.engine ?? edit.adjustments.engine?.engine
        try Self.requireSupported(edit.adjustments, for: asset)
        if asset.mediaType == .video, base == nil {
            (self.base, source, adjustments) = try Self.video(edit, of: asset, data)
            return
        }
        (self.base, source) = if let base { base } else { try Self.input(of: asset) }
        guard edit.mode == .append, asset.hasAdjustments else {
            adjustments = AdjustmentList(
                operations: try Self.operations(edit, onto: source),
                livePhoto: edit.adjustments.livePhoto
            )
            try addPairedVideo(of: asset)
            return
        }
        let current = try Self.currentList(of: asset, data: data)
        // The options refer to the image that is shown, unless its size comes from a later stage than theirs.
        let isShown = !current.operations.contains { $0.kind.changesSize && !$0.kind.isGeometric && !$0.isNeutral }
        let shown = isShown ? asset.currentResource : nil
        let operations = current.operations + (try Self.operations(edit, onto: shown))
        guard operations.count <= AdjustmentList.maximumCount else {
            throw .tooManyOperations(operations.count, of: asset, current: current.operations.count)
        }
        adjustments = AdjustmentList(
            operations: operations,
            livePhoto: edit.adjustments.livePhoto?.merged(onto: current.livePhoto) ?? current.livePhoto
        )
        engine = engine ?? current.engine?.engine
        try addPairedVideo(of: asset)
    }

    /// Returns the imported image or video (S-85).
    static func original(of asset: Asset) throws(RPCError) -> AssetResource {
        let original = asset.resource(asset.mediaType == .video ? .video : .photo)
        guard asset.mediaType == .image || asset.mediaType == .video, let original else {
            throw .noEditableImage(asset)
        }
        return original
    }

    /// Returns the version that an edit starts from: the base of the last edit if this editor made it, so that its list
    /// is replaced, else the version that is shown (S-86, D4).
    static func input(of asset: Asset) throws(RPCError) -> (base: EditBase, source: AssetResource) {
        let original = try original(of: asset)
        let input = asset.editingInput {
            $0 == AdjustmentList.formatIdentifier && $1 == AdjustmentList.formatVersion
        }
        guard let input, input.base != .original else { return (.original, original) }
        return (input.base, input.resource)
    }

    static func currentList(of asset: Asset, data: Bytes?) throws(RPCError) -> AdjustmentList {
        let identifier = asset.adjustmentFormatIdentifier ?? ""
        let version = asset.adjustmentFormatVersion ?? ""
        guard identifier == AdjustmentList.formatIdentifier, version == AdjustmentList.formatVersion else {
            throw .foreignEdit(of: asset, format: identifier, version)
        }
        guard let data, let json = try? JSON(parsing: data), let list = try? AdjustmentList(json: json) else {
            throw .invalidAdjustmentData(of: asset, format: identifier, version)
        }
        return list
    }
}
