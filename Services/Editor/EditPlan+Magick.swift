import Contracts
import JSONValue
import PhotoModel

extension EditPlan {
    /// Returns the operations of an edit: its adjustments, and those that its options of `convert` become.
    ///
    /// - Parameter resource: the image or video that the adjustments apply to; nil if its size is not known
    static func operations(_ edit: ApplyEdit, onto resource: AssetResource?) throws(RPCError) -> [Adjustment] {
        try operations(edit.adjustments, edit.magick, onto: resource)
    }

    /// - Throws: `invalid_params` for options that are not possible for this image or video
    static func operations(
        _ adjustments: AdjustmentList,
        _ magick: MagickOptions?,
        onto resource: AssetResource?
    ) throws(RPCError) -> [Adjustment] {
        guard let magick else { return adjustments.operations }
        let isResized = adjustments.operations.contains { $0.kind.changesSize && !$0.isNeutral }
        var size: (width: Int, height: Int)?
        if let resource, !isResized, resource.pixelWidth > 0, resource.pixelHeight > 0 {
            size = (resource.pixelWidth, resource.pixelHeight)
        }
        let operations: [Adjustment]
        do throws(MagickOptionError) { operations = adjustments.operations + (try magick.operations(for: size)) } catch
        {
            throw .invalidOptions(ofMagick: error)
        }
        guard operations.count <= AdjustmentList.maximumCount else {
            throw .tooManyOperations(operations.count)
        }
        return operations
    }
}
