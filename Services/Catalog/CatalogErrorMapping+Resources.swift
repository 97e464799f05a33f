import Contracts
import Hosting
import JSONValue
import ObjectStorage
import PhotoModel
import Storage

extension CatalogErrorMapping {
    /// Returns the error on the wire for bytes that were refused or could not be delivered.
    static func rpcError(_ error: ResourceError) -> RPCError {
        switch error {
        case .noOriginal:
            ErrorCode.missingResource.error("an asset needs an original: a resource of type photo or video")
        case .severalOfOneType(let types):
            ErrorCode.resourcesDisagree.error(
                "an asset has one original and at most one resource of each type, not \(list(types));"
                    + " create an asset for each original; the RAW file of a photo has the type alternatePhoto",
                ["types": JSON(types.map(\.rawValue))]
            )
        case .disagreement(let original, let file, let reason):
            ErrorCode.resourcesDisagree.error(
                "\(file) does not belong to \(original): \(reason); import it as a separate asset",
                ["file": .string(file), "reason": .string(reason)]
            )
        case .typeNotAccepted(let type):
            ErrorCode.unsupportedFormat.error(
                "resources of the type \(type.rawValue) cannot be sent with a new asset; send "
                    + list(ResourceRules.accepted),
                ["allowed": JSON(ResourceRules.accepted.map(\.rawValue))]
            )
        case .noSource: ErrorCode.invalidParams.error("a resource names exactly one of attachment, upload and path")
        case .noAttachment(let number, let count):
            ErrorCode.invalidParams.error(
                "there is no attachment \(number); the message has \(count)",
                ["parameter": "attachment"]
            )
        case .moveWithoutCopy:
            ErrorCode.invalidParams.error("only a path that is copied can be moved", ["parameter": "move"])
        case .referenceWithoutPath:
            ErrorCode.invalidParams.error("only a path can be referenced", ["parameter": "reference"])
        case .unreadable(let file, let reason):
            ErrorCode.invalidResource.error(
                "\(file) cannot be imported: \(reason)",
                ["file": .string(file), "reason": .string(reason)]
            )
        case .notRead(let failure, let file, let isSidecar): workerError(failure, file, isSidecar)
        case .quarantined(let entry, let file): quarantineError(entry, file)
        case .badDigest: ErrorCode.internalError.error("a bad digest")
        case .malformedDigest:
            ErrorCode.invalidParams.error("a digest must have 64 hexadecimal digits", ["parameter": "digest"])
        case .renderNotUpright(let file):
            ErrorCode.invalidResource.error(
                "the render is not upright: rotate its pixels and set the orientation to 1",
                ["file": .string(file)]
            )
        case .renderNotSupported(let type, let supported):
            ErrorCode.unsupportedFormat.error(
                "a render of the type \(type) is not supported; send one of " + supported.joined(separator: ", "),
                ["supported": JSON(supported)]
            )
        case .adjustmentDataTooLarge(let bytes, let limit):
            ErrorCode.limitExceeded.error(
                "adjustment data has at most \(limit) bytes, this has \(bytes); store the "
                    + "description of the edit, not images",
                ["limit": JSON(limit)]
            )
        case .noSidecarSource:
            ErrorCode.invalidParams.error("a sidecar names an attachment or a path", ["parameter": "sidecar"])
        case .tooMuchMetadata(let limit):
            ErrorCode.busy.error(
                "the metadata of files that are being imported has at most \(limit) bytes, half of them for a client; "
                    + "try again later, with fewer files in a transaction",
                ["limit": JSON(limit)]
            )
        case .sidecarTooLarge(let bytes, let limit):
            ErrorCode.limitExceeded.error(
                "a sidecar has at most \(limit) bytes, this has \(bytes); import the file without it and set its "
                    + "values with asset.update",
                ["limit": .int(limit)]
            )
        case .importFolderNotOpened(let error): ErrorCode.invalidOptions.error("--import-root: \(error)")
        case .moveDenied(let identity):
            ErrorCode.accessDenied.error("\(identity) may not have files moved; use copy instead")
        case .hasOtherLinks(let path):
            ErrorCode.requestNotSupported.error(
                "\(path) has other hard links, so it cannot be moved; use copy instead",
                ["path": .string(path)]
            )
        case .pathOverNetwork:
            ErrorCode.accessDenied.error("paths are accepted over ipc only; send the bytes, or upload them")
        case .pathDenied(let identity):
            ErrorCode.accessDenied.error("\(identity) may not name files here; start the catalog with --import-root")
        case .pathNotAbsolute(let path):
            ErrorCode.invalidParams.error(
                "a path must be absolute: \(path.prefix(200))",
                ["parameter": "path", "path": .string(path)]
            )
        case .notBelowImportFolder(let path):
            ErrorCode.accessDenied.error("\(path) is not below a configured import folder", ["path": .string(path)])
        case .tooManyUploads(let open, let limit):
            ErrorCode.limitExceeded.error(
                "\(open) uploads are open; finish or cancel some (limit \(limit))",
                ["limit": JSON(limit), "open": JSON(open)]
            )
        case .uploadsFull(let open, let limit):
            ErrorCode.busy.error(
                "all clients together have \(limit) uploads open, this one \(open) of them; try again later",
                ["limit": JSON(limit), "open": JSON(open)]
            )
        case .uploadTooLarge(let remaining):
            ErrorCode.limitExceeded.error(
                "an upload may have at most \(remaining) bytes now; import what is uploaded already first, cancel "
                    + "uploads, or name files on the catalog's machine by path",
                ["limit": .int(remaining)]
            )
        case .noChunk:
            ErrorCode.invalidParams.error(
                "upload.append needs exactly one attachment, of at most \(BeginUpload.chunkBytes >> 20) MiB"
            )
        case .chunkTooLarge(let limit):
            ErrorCode.limitExceeded.error(
                "an append has at most \(limit) bytes; append the rest with further requests",
                ["limit": JSON(limit)]
            )
        case .uploadFinished(let name):
            ErrorCode.invalidParams.error("the upload \(name) is finished", ["parameter": "upload"])
        case .uploadNotFinished(let name):
            ErrorCode.invalidParams.error(
                "the upload \(name) is not finished; call upload.finish first",
                ["parameter": "upload"]
            )
        case .chunkOutOfRange(let offset, let size):
            ErrorCode.rangeError.error(
                "the upload has \(size) bytes; the next chunk must begin there, not at \(offset)",
                ["size": .int(size)]
            )
        case .otherChunk(let offset):
            ErrorCode.rangeError.error(
                "the upload has other bytes at \(offset) already; begin another upload for other bytes",
                ["offset": .int(offset)]
            )
        case .announcedSizeDiffers(let received, let announced):
            ErrorCode.rangeError.error(
                "upload.begin has announced \(announced) bytes, these are \(received); "
                    + (received < announced ? "append the rest first" : "begin another upload without a size"),
                ["size": .int(announced)]
            )
        case .tooManyUploadedBytes(let identity, let limit):
            ErrorCode.limitExceeded.error(
                "all uploads of \(identity) together may have at most \(limit) bytes; import what is "
                    + "uploaded already first, or cancel uploads",
                ["limit": .int(limit)]
            )
        case .digestDiffers(let digest):
            ErrorCode.invalidResource.error(
                "the bytes have the SHA-256 \(digest), not the one announced; upload them again",
                ["digest": .string(digest.text)]
            )
        case .uploadBusy(let name):
            ErrorCode.busy.error("the upload \(name) is still writing the previous bytes; wait for that response")
        case .uploadExpired(let name):
            ErrorCode.handleExpired.error(
                "there is no upload \(name.prefix(64)): it was not used for ten minutes, or the catalog was restarted; "
                    + "begin again"
            )
        case .noAsset(let id):
            ErrorCode.identifierNotFound.error(
                "there is no asset with the identifier \(id)",
                ["id": .string(id.text)]
            )
        case .noResource(let id, let type, let available):
            ErrorCode.missingResource.error(
                "\(id) has no resource \(type.rawValue)",
                ["allowed": JSON(available.map(\.rawValue))]
            )
        case .unknownDigest(let id):
            ErrorCode.missingResource.error(
                "\(id) has no resource with this digest; fetch the asset again for those that it has",
                ["parameter": "digest"]
            )
        case .offsetOutOfRange(let offset, let size):
            ErrorCode.rangeError.error(
                "the resource has \(size) bytes, so it cannot be read from offset \(offset)",
                ["size": .int(size)]
            )
        case .rangeTooLong(let bytes, let size):
            ErrorCode.limitExceeded.error(
                "\(bytes) bytes were requested, and a response carries \(limit); read ranges of at most \(limit) bytes "
                    + "with offset and length, or give credit on a DEALER socket to receive resource.chunk notifications",
                ["limit": JSON(limit), "bytes": .int(bytes), "size": .int(size)]
            )
        case .damaged:
            ErrorCode.resourceChanged.error("the stored bytes are damaged; restore the file from a backup")
        case .truncated: ErrorCode.resourceChanged.error("the stored file is truncated; restore it from a backup")
        case .exportTooLarge(let id, let type, let bytes):
            ErrorCode.limitExceeded.error(
                "the \(type.rawValue) of \(id) has \(bytes) bytes and a response carries \(limit): give a path, or use"
                    + " resource.read",
                ["limit": JSON(limit), "bytes": .int(bytes)]
            )
        case .networkAccessRequired(let digest):
            ErrorCode.networkAccessRequired.error(
                "the bytes are in remote storage only; repeat the request with networkAccessAllowed to download them",
                ["isInCloud": true, "digest": .string(digest.text)]
            )
        case .notDownloaded(let digest, let error):
            ErrorCode.networkError.error(
                "the bytes are in remote storage only, and could not be downloaded: \(error.message)",
                [
                    "isInCloud": true, "digest": .string(digest.text), "problem": .string(error.problem.rawValue),
                ]
            )
        case .noRemoteStorage:
            ErrorCode.requestNotSupported.error(
                "the library has no remote storage; start the catalog with --object-store s3://bucket/prefix"
            )
        case .tooManyJobs(let limit):
            ErrorCode.limitExceeded.error(
                "at most \(limit) jobs are kept; acknowledge those that have ended with jobs.update",
                ["limit": JSON(limit)]
            )
        case .noJob(let id):
            ErrorCode.identifierNotFound.error("there is no job \(id); it was acknowledged", ["job": .int(id)])
        case .jobRefused(let job, let action):
            ErrorCode.requestNotSupported.error(
                "the job \(job.id) is \(job.state.rawValue)\(job.isRetried ? " and was retried" : "") and cannot be "
                    + "\(action.participle); jobs.list with this action names those that can",
                ["job": .int(job.id), "state": .string(job.state.rawValue)]
            )
        case .exportPathNotAbsolute:
            ErrorCode.invalidParams.error("path must be an absolute path without ..", ["parameter": "path"])
        case .exportInLibrary:
            ErrorCode.invalidOptions.error(
                "the path is inside the library's own folder; choose another",
                ["parameter": "path"]
            )
        case .exportFailed(let error, let path): exportError(error, path)
        }
    }

    /// The maximum number of bytes in a response.
    private static let limit = ReadResource.maxReplyBytes

    private static func list(_ types: [ResourceType]) -> String { types.map(\.rawValue).joined(separator: ", ") }

    private static func workerError(_ failure: WorkerFailure, _ name: String, _ isSidecar: Bool) -> RPCError {
        let data: JSONObject = ["file": .string(name), "reason": .string(failure.message)]
        var error =
            switch failure {
            case .crashed, .killed, .exited: ErrorCode.workerCrashed.error("\(name): \(failure.message)", data)
            case .timedOut: ErrorCode.workerTimeout.error("\(name): \(failure.message)", data)
            case .queueFull: ErrorCode.busy.error(failure.message)
            case .unavailable: ErrorCode.unavailable.error(failure.message)
            case .cancelled: ErrorCode.userCancelled.error("the request was cancelled")
            case .refused, .resultTooLarge, .malformedResult:
                ErrorCode.invalidResource.error("\(name) cannot be imported: \(failure.message)", data)
            }
        if isSidecar { error.data["sidecar"] = true }
        return error
    }

    private static func quarantineError(_ entry: QuarantinedResource, _ name: String) -> RPCError {
        var error = entry.rpcError(of: name)
        error.data["file"] = .string(name)
        return error
    }

    private static func exportError(_ error: StorageError, _ path: String) -> RPCError {
        switch error {
        case .notEnoughSpace:
            ErrorCode.notEnoughSpace.error("the disk of \(path) is full; free some space and export again")
        case .resourceChanged(let message): ErrorCode.resourceChanged.error(message)
        case .notFound:
            ErrorCode.invalidOptions.error("the folder of \(path) does not exist; create it", ["parameter": "path"])
        case .invalid(let message): ErrorCode.invalidOptions.error(message, ["parameter": "path"])
        default: ErrorCode.invalidOptions.error("\(path) cannot be written: \(error.message)", ["parameter": "path"])
        }
    }
}

extension UploadJob.Action {
    fileprivate var participle: String {
        switch self {
        case .acknowledge: "acknowledged"
        case .retry: "retried"
        case .cancel: "cancelled"
        }
    }
}
