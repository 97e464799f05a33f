import Contracts
import JSONValue
import Messaging
import PhotoModel

/// What an edit renders: which bytes, and which operations on them (spec section 9; DESIGN 3.5).
struct EditPlan: Sendable, Equatable {
    /// The picture that the operations apply to.
    var source: AssetResource
    var adjustments: AdjustmentList
    /// The revision of the pixels that the edit takes the place of.
    var contentRevision: Revision
    /// The revision of the whole asset, where the edit depends on it.
    var ifRevision: Revision?
    /// Whether the asset goes back to its original in the same transaction, because what is there began with something
    /// else than the original: then the edit's base is the original again.
    var revertsFirst = false

    /// Whether the plan needs the adjustment data that the asset has.
    static func needsAdjustmentData(_ mode: AdjustmentMode, of asset: Asset) -> Bool {
        mode == .append && asset.hasAdjustments
    }

    /// - Parameters:
    ///   - edit: what is asked for
    ///   - asset: as it is now
    ///   - data: the bytes of its adjustment data, where ``needsAdjustmentData(_:of:)`` says so
    /// - Throws: `conflict` where the asset has other pixels than the caller says, `missing_resource` where there is
    ///   no picture, `request_not_supported` where the edit cannot follow the one that is there, `limit_exceeded` for
    ///   too many operations.
    init(_ edit: ApplyEdit, of asset: Asset, adjustmentData data: Bytes?) throws(RPCError) {
        if let expected = edit.ifContentRevision, expected != asset.contentRevision {
            throw Self.conflict(asset, expected: expected)
        }
        if let expected = edit.ifRevision, expected != asset.revision {
            throw Self.conflict(asset, expected: expected)
        }
        ifRevision = edit.ifRevision
        contentRevision = asset.contentRevision
        let original = try Self.original(of: asset)
        guard Self.needsAdjustmentData(edit.mode, of: asset) else {
            source = original
            adjustments = edit.adjustments
            revertsFirst =
                asset.resource(.adjustmentBasePhoto) != nil
                || asset.hasAdjustments && asset.adjustmentFormatIdentifier != AdjustmentList.formatIdentifier
            return
        }
        // The edit that is there began with its base: the original, or what another program had made of it.
        source = asset.resource(.adjustmentBasePhoto) ?? original
        let present = try Self.presentList(of: asset, data: data)
        let operations = present.operations + edit.adjustments.operations
        guard operations.count <= AdjustmentList.maximumCount else {
            throw Refusal.limitExceeded.error(
                "\(asset.id) has \(present.operations.count) operations; with these it would have \(operations.count),"
                    + " and \(AdjustmentList.maximumCount) are the most. Use mode \"replace\" with a shorter list",
                ["limit": JSON(AdjustmentList.maximumCount), "present": JSON(present.operations.count)]
            )
        }
        adjustments = AdjustmentList(operations: operations)
    }

    /// The picture as it was imported (spec S-85).
    static func original(of asset: Asset) throws(RPCError) -> AssetResource {
        guard asset.mediaType == .image, let photo = asset.resource(.photo) else {
            throw Refusal.missingResource.error(
                "\(asset.id) is of the kind \(asset.mediaType.rawValue) and has no picture that could be edited",
                ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
            )
        }
        return photo
    }

    static func conflict(_ asset: Asset, expected: Revision) -> RPCError {
        Refusal.conflict.error(
            "\(asset.id) is at revision \(asset.revision) with the pixels of \(asset.contentRevision), not \(expected):"
                + " fetch it and decide again",
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
            throw Refusal.requestNotSupported.error(
                "the last edit of \(asset.id) has the format \(identifier) \(version), which this editor cannot extend;"
                    + " use mode \"replace\" to begin with the original again",
                [
                    "formatIdentifier": .string(identifier), "formatVersion": .string(version),
                    "supported": .string("\(AdjustmentList.formatIdentifier) \(AdjustmentList.formatVersion)"),
                ]
            )
        }
        guard let data, let json = try? JSON(parsing: data), let list = try? AdjustmentList(json: json) else {
            throw Refusal.invalidResource.error(
                "the adjustment data of \(asset.id) says \(identifier) \(version) but cannot be read as such;"
                    + " use mode \"replace\"",
                ["asset": .string(asset.id.text)]
            )
        }
        return list
    }
}
