import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoModel
import Storage

/// The errors of the thumbnailer. Only this file of the service contains the codes and texts of errors. Errors of the
/// catalog are passed on unchanged.
extension RPCError {
    // MARK: The asset and its bytes

    static func assetNotFound(_ id: ObjectID) -> RPCError {
        ErrorCode.identifierNotFound.error("there is no asset \(id)", ["id": .string(id.text)])
    }

    static func noImage(_ asset: AssetSummary) -> RPCError {
        ErrorCode.missingResource.error(
            "\(asset.id) is of type \(asset.mediaType.rawValue) and has no image",
            ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
        )
    }

    static func noVideo(_ asset: AssetSummary) -> RPCError {
        ErrorCode.missingResource.error(
            "\(asset.id) is of type \(asset.mediaType.rawValue) and has no video",
            ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
        )
    }

    /// Returns the error of a request for the bytes of an image if the asset is a video.
    static func isVideo(_ asset: AssetSummary) -> RPCError {
        ErrorCode.missingResource.error(
            "\(asset.id) is a video; request a frame with image.request, or its bytes with resource.read",
            ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
        )
    }

    static func noLivePhoto(_ asset: AssetSummary) -> RPCError {
        ErrorCode.missingResource.error(
            "\(asset.id) is no Live Photo; request it with image.request or video.playback",
            ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
        )
    }

    static func streamNotFound(_ asset: AssetSummary) -> RPCError {
        ErrorCode.missingResource.error(
            "\(asset.id) has no stream of this name; call video.playback again",
            ["asset": .string(asset.id.text)]
        )
    }

    static let damagedBytes = ErrorCode.resourceChanged.error(
        "the stored bytes are damaged; restore the file from a backup"
    )

    static func unreadableBytes(_ error: StorageError) -> RPCError {
        ErrorCode.missingResource.error("the stored bytes cannot be read (\(error.name))")
    }

    // MARK: Options

    static func emptyTargetSize(width: Int, height: Int) -> RPCError {
        ErrorCode.invalidOptions.error(
            "targetSize is \(width) x \(height), but each side needs at least one pixel; use \"max\" for all of them",
            ["parameter": "targetSize"]
        )
    }

    static let cropNeedsExactSize = ErrorCode.invalidOptions.error(
        "normalizedCropRect needs resizeMode \"exact\" and a targetSize in pixels",
        ["parameter": "normalizedCropRect"]
    )
    static let invalidCrop = ErrorCode.invalidOptions.error(
        "normalizedCropRect must have an area and lie within the image: x + width and y + height at most 1",
        ["parameter": "normalizedCropRect"]
    )
    static let frameTimeOfPhoto = ErrorCode.invalidOptions.error(
        "frameTime is for videos, and the image is made from a photo; leave it out",
        ["parameter": "frameTime"]
    )

    /// - Parameters:
    ///   - time: in microseconds
    ///   - duration: in microseconds
    ///   - parameter: the parameter that contains the time
    static func frameTimeAfterEnd(_ time: Int64, duration: Int64, parameter: String) -> RPCError {
        ErrorCode.invalidOptions.error(
            "\(parameter) is \(time), but the video lasts \(duration) microseconds",
            ["parameter": .string(parameter), "duration": .int(duration)]
        )
    }

    /// Returns the error of `image.frames` with both or neither of `times` and `count`.
    static func framesNotChosen(parameter: String) -> RPCError {
        ErrorCode.invalidOptions.error("give either times or count", ["parameter": .string(parameter)])
    }

    /// - Parameter offered: the formats that this build encodes
    static func cannotEncode(_ format: DeliveredFormat, offered: [DeliveredFormat]) -> RPCError {
        ErrorCode.unsupportedFormat.error(
            "\(format.rawValue) cannot be encoded here; request \(offered.map(\.rawValue).joined(separator: ", "))",
            ["formats": JSON(offered.map(\.rawValue))]
        )
    }

    // MARK: Contact sheets

    static let emptySheet = ErrorCode.invalidOptions.error(
        "a sheet needs at least one asset",
        ["parameter": "assets"]
    )

    static func wrongLabels(_ labels: Int, assets: Int) -> RPCError {
        ErrorCode.invalidOptions.error(
            "give one label for each asset or none: \(labels) labels for \(assets) assets",
            ["parameter": "labels"]
        )
    }

    /// - Parameter limit: the maximum area of a sheet in pixels
    static func sheetTooLarge(columns: Int, rows: Int, cell: Int, limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "\(columns) by \(rows) cells of \(cell) pixels exceed the \(limit) pixels that a sheet may have; use smaller"
                + " cells or several sheets",
            ["limit": JSON(limit)]
        )
    }

    // MARK: Size of replies

    static func sheetTooLarge(bytes: Int, limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the sheet has \(bytes) bytes and a response carries \(limit); use smaller cells or several sheets",
            ["limit": JSON(limit), "bytes": JSON(bytes)]
        )
    }

    static func imageTooLarge(bytes: Int64) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the image has \(bytes) bytes and a response carries \(ImageDelivery.maxAttachedBytes); use a DEALER "
                + "socket, which receives it in parts, or request a smaller size, JPEG or a lower quality",
            ["limit": JSON(ImageDelivery.maxAttachedBytes), "bytes": .int(bytes)]
        )
    }

    /// - Parameter bytes: the size of the frames that were rendered so far
    static func framesTooLarge(bytes: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the frames have at least \(bytes) bytes and a response carries \(ImageDelivery.maxAttachedBytes); request "
                + "fewer or smaller frames",
            ["limit": JSON(ImageDelivery.maxAttachedBytes), "bytes": JSON(bytes)]
        )
    }

    /// Returns the error of a range that begins after the end of a stream.
    static func rangeAfterEnd(offset: Int64, size: Int64) -> RPCError {
        ErrorCode.rangeError.error(
            "the stream has \(size) bytes, so it cannot be read from offset \(offset)",
            ["size": .int(size)]
        )
    }

    static func rangeTooLong(_ length: Int64, size: Int64) -> RPCError {
        let limit = ReadResource.maxReplyBytes
        return ErrorCode.limitExceeded.error(
            "\(length) bytes were requested, and a response carries \(limit); read ranges of at most \(limit) bytes with "
                + "offset and length, or give credit on a DEALER socket to receive resource.chunk notifications",
            ["limit": JSON(limit), "bytes": .int(length), "size": .int(size)]
        )
    }

    // MARK: Caching managers

    static func tooManyCachingManagers(perClient: Int, limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "\(perClient) caching managers per client or \(limit) in all are open; close one",
            ["limit": JSON(perClient)]
        )
    }

    static let unknownCachingManager = ErrorCode.handleExpired.error(
        "you have no caching manager of this name: its lease of ten minutes expired or the service was restarted; open a"
            + " new one"
    )

    // MARK: Exports of videos

    static func tooManyExports(perClient: Int, limit: Int) -> RPCError {
        ErrorCode.busy.error(
            "\(perClient) exports of a client or \(limit) in all are open; cancel one with"
                + " \(CancelVideoExport.method), or try again later",
            ["limit": JSON(perClient)]
        )
    }

    static func unknownExport(_ name: String) -> RPCError {
        ErrorCode.handleExpired.error(
            "there is no export \(name.prefix(20)), or it was not used for \(ExportVideo.leaseSeconds) s; begin again",
            ["export": .string(String(name.prefix(64)))]
        )
    }

    static let exportRemoved = ErrorCode.limitExceeded.error(
        "the exported file was removed, because newer ones needed its space; export the video again, one at a time, or "
            + "give the thumbnailer more with --exports-mib"
    )

    /// - Parameter errno: the error of write(2) or ftruncate(2)
    static func exportNotWritten(errno: Int32) -> RPCError {
        let reason = String(cString: strerror(errno))
        return errno == ENOSPC || errno == EDQUOT || errno == EFBIG
            ? ErrorCode.notEnoughSpace.error("the exported file cannot be written: \(reason); free space in the cache")
            : ErrorCode.internalError.error("the exported file cannot be written: \(reason)")
    }

    // MARK: Rendering

    static func renditionQueueFull(limit: Int) -> RPCError {
        ErrorCode.busy.error("\(limit) renditions are queued or being rendered; try again later")
    }

    static let serviceIsStopping = ErrorCode.interrupted.error("the service is stopping; try again").ofStoppingService
    static let requestCancelled = ErrorCode.userCancelled.error("the request was cancelled")
    static let jobTooLong = ErrorCode.limitExceeded.error("the images take more time than a job may; request fewer")

    /// - Parameter problem: the difference from the expected result, for example "is not an image"
    static func invalidResult(_ problem: String) -> RPCError {
        ErrorCode.internalError.error("a worker's result \(problem)")
    }

    /// - Parameter problem: the failed system call
    static func renditionNotWritten(_ problem: String) -> RPCError {
        ErrorCode.unavailable.error("the image cannot be written to the disk cache: \(problem)")
    }

    static let noRendition = ErrorCode.internalError.error("a rendition was neither rendered nor refused")
}

/// The error of a job whose file has other bytes than expected.
extension WorkerJobError {
    static func differentBytes(_ digest: String) -> WorkerJobError {
        WorkerJobError(
            name: ErrorCode.resourceChanged.rawValue,
            message: "the stored bytes do not match \(digest); restore the file from a backup"
        )
    }
}
