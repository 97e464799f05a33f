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
    /// The engine that the request, its list or the present edit names; nil for the editor's setting.
    var engine: RenderEngine?
    /// The content revision that the edit replaces.
    var contentRevision: Revision
    /// The revision of the whole asset, if the edit depends on it.
    var ifRevision: Revision?

    /// Returns true if the plan needs the asset's present adjustment data.
    static func needsAdjustmentData(_ mode: AdjustmentMode, of asset: Asset) -> Bool {
        mode == .append && asset.hasAdjustments
    }

    /// - Parameters:
    ///   - edit: the requested edit
    ///   - asset: the asset as it is now
    ///   - data: the bytes of its adjustment data, if ``needsAdjustmentData(_:of:)`` returns true
    ///   - base: the version to start from; nil for the one that ``input(of:)`` returns
    /// - Throws: `conflict` if the asset's revision is not the expected one, `missing_resource` if there is no image,
    ///   `request_not_supported` if the present edit cannot be extended, `limit_exceeded` for too many operations
    init(
        _ edit: ApplyEdit,
        of asset: Asset,
        adjustmentData data: Bytes?,
        from base: (base: EditBase, source: AssetResource)? = nil
    ) throws(RPCError) {
        if let expected = edit.ifContentRevision, expected != asset.contentRevision {
            throw Self.conflict(asset, expected: expected)
        }
        if let expected = edit.ifRevision, expected != asset.revision {
            throw Self.conflict(asset, expected: expected)
        }
        ifRevision = edit.ifRevision
        contentRevision = asset.contentRevision
        engine = edit.engine ?? edit.adjustments.engine?.engine
        (self.base, source) = if let base { base } else { try Self.input(of: asset) }
        guard Self.needsAdjustmentData(edit.mode, of: asset) else {
            adjustments = AdjustmentList(operations: try Self.operations(edit, onto: source))
            return
        }
        let present = try Self.presentList(of: asset, data: data)
        // What is shown is the picture that the options are for, unless its size comes from a later stage than theirs.
        let isShown = !present.operations.contains { $0.kind.changesSize && !$0.kind.isGeometric && !$0.isNeutral }
        let shown = isShown ? asset.currentResource : nil
        let operations = present.operations + (try Self.operations(edit, onto: shown))
        guard operations.count <= AdjustmentList.maximumCount else {
            throw ErrorCode.limitExceeded.error(
                "\(asset.id) has \(present.operations.count) operations; with these it would have \(operations.count),"
                    + " and the limit is \(AdjustmentList.maximumCount). Use mode \"replace\" with a shorter list",
                ["limit": JSON(AdjustmentList.maximumCount), "present": JSON(present.operations.count)]
            )
        }
        adjustments = AdjustmentList(operations: operations)
        engine = engine ?? present.engine?.engine
    }

    /// Returns the imported image (S-85).
    static func original(of asset: Asset) throws(RPCError) -> AssetResource {
        guard asset.mediaType == .image, let photo = asset.resource(.photo) else {
            throw ErrorCode.missingResource.error(
                "\(asset.id) is of type \(asset.mediaType.rawValue) and has no image that can be edited",
                ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
            )
        }
        return photo
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

    static func conflict(_ asset: Asset, expected: Revision) -> RPCError {
        ErrorCode.conflict.error(
            "\(asset.id) is at revision \(asset.revision) with the pixels of \(asset.contentRevision), not \(expected):"
                + " fetch the asset and try again",
            [
                "asset": .string(asset.id.text), "expected": .string(expected.description),
                "revision": .string(asset.revision.description),
                "contentRevision": .string(asset.contentRevision.description),
            ]
        )
    }

    static func presentList(of asset: Asset, data: Bytes?) throws(RPCError) -> AdjustmentList {
        let identifier = asset.adjustmentFormatIdentifier ?? ""
        let version = asset.adjustmentFormatVersion ?? ""
        guard identifier == AdjustmentList.formatIdentifier, version == AdjustmentList.formatVersion else {
            throw ErrorCode.requestNotSupported.error(
                "the last edit of \(asset.id) has the format \(identifier) \(version), which this editor cannot extend;"
                    + " use mode \"replace\" to start from what it shows",
                [
                    "formatIdentifier": .string(identifier), "formatVersion": .string(version),
                    "supported": .string("\(AdjustmentList.formatIdentifier) \(AdjustmentList.formatVersion)"),
                ]
            )
        }
        guard let data, let json = try? JSON(parsing: data), let list = try? AdjustmentList(json: json) else {
            throw ErrorCode.invalidResource.error(
                "the adjustment data of \(asset.id) has the format \(identifier) \(version) but is invalid;"
                    + " use mode \"replace\"",
                ["asset": .string(asset.id.text)]
            )
        }
        return list
    }
}
