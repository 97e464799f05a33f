import Contracts
import Glibc
import Hosting
import Imaging
import JSONValue
import PhotoModel
import Storage
import Video

/// The errors of requests that the editor refuses: only this file of the service has the codes and texts of errors.
/// Errors of the catalog are passed on as they are.
extension RPCError {
    // MARK: The asset

    static func assetNotFound(_ id: ObjectID) -> RPCError {
        ErrorCode.identifierNotFound.error("there is no asset \(id)", ["id": .string(id.text)])
    }

    /// A client with a limited grant edits the assets that it names.
    static func fetchInLimitedView(_ identity: String) -> RPCError {
        ErrorCode.accessDenied.error(
            "\(identity) sees the assets of its list only: name the assets to edit instead of a fetch",
            ["identity": .string(identity)]
        )
    }

    static func noOriginal(_ asset: Asset) -> RPCError {
        ErrorCode.missingResource.error("\(asset.id) has no original", ["asset": .string(asset.id.text)])
    }

    static func noEditableImage(_ asset: Asset) -> RPCError {
        ErrorCode.missingResource.error(
            "\(asset.id) is of type \(asset.mediaType.rawValue) and has no image that can be edited",
            ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
        )
    }

    /// `originalChoice` was given for an asset that is not a pair of RAW and compressed original.
    static func noOriginalChoice(_ asset: Asset) -> RPCError {
        ErrorCode.invalidOptions.error(
            "\(asset.id) does not have both a RAW and a compressed original: omit originalChoice",
            ["asset": .string(asset.id.text)]
        )
    }

    /// The stored bytes of a resource cannot be read.
    static func unreadable(_ resource: AssetResource, of asset: Asset, _ error: StorageError) -> RPCError {
        ErrorCode.resourceChanged.error(
            "the \(resource.type.rawValue) of \(asset.id) cannot be read (\(error.name)); restore the file from a "
                + "backup"
        )
    }

    static func unreadableAdjustmentData(of asset: Asset, _ error: StorageError) -> RPCError {
        ErrorCode.invalidResource.error("the adjustment data of \(asset.id) cannot be read (\(error.name))")
    }

    /// The asset has changed since the revision that the edit was made for.
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

    // MARK: The list of operations

    static func invalidOptions(ofMagick error: MagickOptionError) -> RPCError {
        ErrorCode.invalidParams.error(
            "magick: \(error.description)",
            ["parameter": "magick", "word": .string(error.word), "character": JSON(error.position)]
        )
    }

    /// The adjustments and the options of `magick` together.
    static func tooManyOperations(_ count: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the adjustments and the options have \(count) operations, and a list has at most "
                + "\(AdjustmentList.maximumCount)",
            ["limit": JSON(AdjustmentList.maximumCount)]
        )
    }

    /// The current list and the operations that `append` adds to it.
    static func tooManyOperations(_ count: Int, of asset: Asset, current: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "\(asset.id) has \(current) operations; with these it would have \(count), and the limit is "
                + "\(AdjustmentList.maximumCount). Use mode \"replace\" with a shorter list",
            ["limit": JSON(AdjustmentList.maximumCount), "present": JSON(current)]
        )
    }

    /// The last edit was made by another program.
    static func foreignEdit(of asset: Asset, format identifier: String, _ version: String) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "the last edit of \(asset.id) has the format \(identifier) \(version), which this editor cannot extend; use"
                + " mode \"replace\" to start from what it shows",
            [
                "formatIdentifier": .string(identifier), "formatVersion": .string(version),
                "supported": .string("\(AdjustmentList.formatIdentifier) \(AdjustmentList.formatVersion)"),
            ]
        )
    }

    static func invalidAdjustmentData(of asset: Asset, format identifier: String, _ version: String) -> RPCError {
        ErrorCode.invalidResource.error(
            "the adjustment data of \(asset.id) has the format \(identifier) \(version) but is invalid; use mode"
                + " \"replace\"",
            ["asset": .string(asset.id.text)]
        )
    }

    static func operationOfPhotos(_ kind: AdjustmentKind, _ asset: Asset) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "\"\(kind.rawValue)\" is an operation for photos, and \(asset.id) is a video; videos support "
                + VideoAdjustments.supportedText,
            ["operation": .string(kind.rawValue), "mediaType": .string(asset.mediaType.rawValue)]
        )
    }

    static func operationOfVideos(_ kind: AdjustmentKind, _ asset: Asset) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "\"\(kind.rawValue)\" is an operation for videos, and \(asset.id) is a photo; the sound of a Live Photo's "
                + "video is audioVolume of edits.livePhoto",
            ["operation": .string(kind.rawValue), "mediaType": .string(asset.mediaType.rawValue)]
        )
    }

    /// The video of a Live Photo is edited too, and does not have the operation.
    static func operationOfStills(_ kind: AdjustmentKind, _ asset: Asset) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "\"\(kind.rawValue)\" is an operation for photos, and the video of \(asset.id) would be edited too; videos "
                + "have \(VideoAdjustments.supportedText). Use edits.apply without livePhoto to edit the still alone",
            ["operation": .string(kind.rawValue), "asset": .string(asset.id.text)]
        )
    }

    static func noLivePhoto(_ asset: Asset) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "\(asset.id) is not a Live Photo; edit it with edits.apply",
            ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
        )
    }

    /// - Parameter time: microseconds
    static func keyFrameAfterEnd(_ time: Int64, duration: Int64) -> RPCError {
        ErrorCode.invalidParams.error(
            "keyFrame: the video has \(duration) microseconds, and the frame is at \(time)",
            ["parameter": "keyFrame", "duration": .int(duration)]
        )
    }

    static func nothingToCopy(from id: ObjectID) -> RPCError {
        ErrorCode.requestNotSupported.error("\(id) has no edit to copy", ["asset": .string(id.text)])
    }

    // MARK: Steps of the history

    static let invalidRecord = ErrorCode.internalError.error("a change record of the history is invalid")

    static func tooManySteps(of asset: Asset) -> RPCError {
        ErrorCode.limitExceeded.error(
            "\(asset.id) has more than \(EditHistory.Result.maxSteps) edits",
            ["limit": JSON(EditHistory.Result.maxSteps)]
        )
    }

    static func stepNotFound(_ step: Int, of asset: ObjectID, steps: Int) -> RPCError {
        ErrorCode.rangeError.error(
            "\(asset) has \(steps) steps; there is no step \(step)",
            ["steps": JSON(steps)]
        )
    }

    /// The step is another program's edit of a video.
    static func foreignVideoStep(_ step: EditStep, of asset: Asset) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "step \(step.step) of \(asset.id) is another program's edit of a video: let that program make it again or"
                + " revert to step 0",
            ["step": JSON(step.step), "formatIdentifier": .string(step.formatIdentifier ?? "")]
        )
    }

    /// The step has no operations that could be extended.
    static func foreignStep(_ step: EditStep, of id: ObjectID) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "step \(step.step) of \(id) was made by another program and has no operations to append or to enhance;"
                + " restore it as it is",
            ["step": JSON(step.step), "formatIdentifier": .string(step.formatIdentifier ?? "")]
        )
    }

    static func collected(_ content: String, of step: EditStep, _ asset: Asset) -> RPCError {
        ErrorCode.missingResource.error(
            "the \(content) of step \(step.step) of \(asset.id) is no longer stored; restore another step",
            ["step": JSON(step.step)]
        )
    }

    static func adjustmentDataCollected(_ step: EditStep, of id: ObjectID) -> RPCError {
        ErrorCode.missingResource.error(
            "the adjustment data of step \(step.step) of \(id) is no longer kept",
            ["step": JSON(step.step)]
        )
    }

    // MARK: Parameters

    /// `convert` does not edit videos.
    static func noCommand(for asset: Asset) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "\(asset.id) is a video, and convert edits photos; describe its colours as cube or hald",
            ["asset": .string(asset.id.text)]
        )
    }

    static func frameTimeOfPhoto(_ asset: Asset) -> RPCError {
        ErrorCode.invalidOptions.error("\(asset.id) is a photo: omit frameTime", ["asset": .string(asset.id.text)])
    }

    static let describesNothing = ErrorCode.invalidParams.error(
        "edits.describe: name an asset, or give adjustments",
        ["parameter": "asset"]
    )
    /// The form `convert` depends on the asset's size.
    static let describesNoAsset = ErrorCode.invalidParams.error(
        "edits.describe: name an asset",
        ["parameter": "asset"]
    )
    static let appliesToNothing = ErrorCode.invalidParams.error(
        "edits.apply: give exactly one of asset, assets and fetch",
        ["parameter": "asset"]
    )
    static let revisionOfSeveral = ErrorCode.invalidOptions.error(
        "a revision applies to one asset: use it with asset only"
    )
    static let copiesToNothing = ErrorCode.invalidParams.error(
        "edits.copy: give either to or fetch",
        ["parameter": "to"]
    )

    static func tooManyAssets() -> RPCError {
        ErrorCode.limitExceeded.error(
            "the fetch has more than \(ApplyEdits.maxAssets) assets; use a limit and repeat",
            ["limit": JSON(ApplyEdits.maxAssets)]
        )
    }

    // MARK: Running and waiting

    static func tooManyEdits(_ asset: ObjectID) -> RPCError {
        ErrorCode.busy.error(
            "too many edits are running or waiting; try again later",
            ["asset": .string(asset.text)]
        )
    }

    /// A published edit of a video was begun in another lane than ``EditLane/video``. It moves there, and no client
    /// gets this.
    static let videoInOtherLane = ErrorCode.busy.error("videos are edited one at a time; try again later")

    /// A later save or preview of the same Live Photo cancelled this one (T-48).
    static func replacedEdit(of asset: ObjectID) -> RPCError {
        ErrorCode.userCancelled.error(
            "a later edits.livePhoto or edits.preview of \(asset) cancelled this one; nothing was changed",
            ["asset": .string(asset.text), "isReplaced": true]
        )
    }

    static let cancelledWhileWaiting = ErrorCode.userCancelled.error(
        "the request was cancelled while it waited; nothing was changed"
    )

    /// - Parameter progress: the counts of assets that are done
    static func cancelled(after done: Int, of count: Int, _ progress: JSONObject) -> RPCError {
        ErrorCode.userCancelled.error("cancelled after \(done) of \(count) assets; those are kept", progress)
    }

    // MARK: Results

    static func videoNotWritten(errno: Int32, folder: String) -> RPCError {
        let reason = String(cString: strerror(errno))
        return errno == ENOSPC || errno == EDQUOT || errno == EFBIG
            ? ErrorCode.notEnoughSpace.error("the video cannot be written: \(reason); free space in \(folder)")
            : ErrorCode.internalError.error("the video cannot be written to \(folder): \(reason)")
    }

    static func previewTooLarge(_ bytes: Int, limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the preview has \(bytes) bytes and a response carries \(limit); request a smaller maximumSide",
            ["limit": JSON(limit), "bytes": JSON(bytes)]
        )
    }

    static func descriptionTooLarge(_ bytes: Int, limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the file has \(bytes) bytes and a response carries \(limit); grain and large masks take the most: "
                + "describe the list without them",
            ["limit": JSON(limit), "bytes": JSON(bytes)]
        )
    }

    /// - Parameter expected: the expected result, for example "an image"
    static func invalidResult(expected: String) -> RPCError {
        ErrorCode.internalError.error("a worker's result is not \(expected)")
    }
}

/// The jobs that a worker refuses.
extension WorkerJobError {
    static func differentBytes(_ digest: String) -> WorkerJobError {
        WorkerJobError(
            name: ErrorCode.resourceChanged.rawValue,
            message: "the stored bytes do not match \(digest); restore the file from a backup"
        )
    }

    static func operationOfPhotos(_ kind: AdjustmentKind) -> WorkerJobError {
        WorkerJobError(
            name: ErrorCode.requestNotSupported.rawValue,
            message: "\"\(kind.rawValue)\" is an operation for photos; videos support \(VideoAdjustments.supportedText)"
        )
    }

    /// - Parameter start: microseconds
    static func partAfterEnd(start: Int64, of duration: Int64) -> WorkerJobError {
        WorkerJobError(
            name: ErrorCode.invalidParams.rawValue,
            message: "timeRange: the video has \(Double(duration) / 1e6) seconds, and the part begins at "
                + "\(Double(start) / 1e6)"
        )
    }

    /// The error of a job that edits a video.
    init(edit error: any Error) {
        switch error {
        case let error as WorkerJobError: self = error
        case let error as VideoError: self.init(name: error.name, message: error.message)
        case let error as ImagingError: self.init(name: error.name, message: error.message)
        default: self.init(name: ErrorCode.internalError.rawValue, message: "the video cannot be rendered")
        }
    }

    static func invalidRender(_ error: some Error) -> WorkerJobError {
        WorkerJobError(name: ErrorCode.invalidResource.rawValue, message: "\(error)")
    }

    static func invalidAdjustments(_ error: AdjustmentError) -> WorkerJobError {
        WorkerJobError(name: ErrorCode.invalidParams.rawValue, message: error.description)
    }
}
