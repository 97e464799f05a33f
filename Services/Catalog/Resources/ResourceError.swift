import Contracts
import Hosting
import ObjectStorage
import PhotoModel
import Storage

/// The reason why bytes are not imported, uploaded, read or exported.
enum ResourceError: RefusedRequest, Equatable {
    // MARK: Files of a new asset

    /// A new asset has no original.
    case noOriginal
    /// A new asset has several originals, or several resources of one type.
    case severalOfOneType([ResourceType])
    /// The bytes of a file show that it does not belong to the original.
    case disagreement(original: String, file: String, reason: String)
    /// Resources of the type cannot be sent with a new asset.
    case typeNotAccepted(ResourceType)
    /// A resource names no bytes, or several.
    case noSource
    /// The message has no attachment with the number.
    case noAttachment(Int, count: Int)
    /// `move` was set for bytes that are not copied from a path.
    case moveWithoutCopy
    /// `reference` was set for bytes that are not at a path.
    case referenceWithoutPath
    /// The file cannot be read, or its bytes cannot be imported.
    case unreadable(file: String, reason: String)
    /// The worker failed to read the file.
    case notRead(WorkerFailure, file: String, isSidecar: Bool = false)
    /// The file crashed or hung workers before.
    case quarantined(QuarantinedResource, file: String)
    /// The digest of stored bytes is malformed.
    case badDigest
    /// A digest that a client sent is malformed.
    case malformedDigest

    // MARK: Renders, adjustment data and sidecars

    /// The pixels of a render are not upright.
    case renderNotUpright(file: String)
    /// A render has a format that is not supported.
    case renderNotSupported(type: String, supported: [String])
    /// The adjustment data is too large.
    case adjustmentDataTooLarge(bytes: Int, limit: Int)
    /// A sidecar names neither an attachment nor a path.
    case noSidecarSource
    /// The memory for the metadata of uncommitted files is full.
    case tooMuchMetadata(limit: Int)
    /// The sidecar is too large.
    case sidecarTooLarge(bytes: Int, limit: Int64)

    // MARK: Paths

    /// An import folder of the configuration cannot be opened.
    case importFolderNotOpened(StorageError)
    /// The identity may not move files into the library.
    case moveDenied(identity: String)
    /// The file has other hard links.
    case hasOtherLinks(path: String)
    /// A client that is not connected over ipc names a path.
    case pathOverNetwork
    /// The identity may not name files.
    case pathDenied(identity: String)
    /// The path of a file to import is not absolute.
    case pathNotAbsolute(String)
    /// The path is not below an import folder.
    case notBelowImportFolder(path: String)

    // MARK: Uploads

    /// The identity has too many open uploads.
    case tooManyUploads(open: Int, limit: Int)
    /// All identities together have the maximum number of open uploads.
    case uploadsFull(open: Int, limit: Int)
    /// The upload is larger than the remaining bytes of the identity.
    case uploadTooLarge(remaining: Int64)
    /// `upload.append` does not have exactly one attachment.
    case noChunk
    /// The chunk is too large.
    case chunkTooLarge(limit: Int)
    /// The upload is finished.
    case uploadFinished(String)
    /// The upload is not finished.
    case uploadNotFinished(String)
    /// The chunk does not begin at the end of the upload.
    case chunkOutOfRange(offset: Int64, size: Int64)
    /// The upload has other bytes at the offset.
    case otherChunk(offset: Int64)
    /// The upload has more or fewer bytes than `upload.begin` announced.
    case announcedSizeDiffers(received: Int64, announced: Int64)
    /// The uploads of the identity have too many bytes.
    case tooManyUploadedBytes(identity: String, limit: Int64)
    /// The bytes do not have the digest that was announced.
    case digestDiffers(ResourceDigest)
    /// The previous chunk is still being written.
    case uploadBusy(String)
    /// The upload does not exist, has expired, or belongs to another identity.
    case uploadExpired(String)

    // MARK: Reading and exporting

    /// No asset has the identifier.
    case noAsset(ObjectID)
    /// The asset has no resource of the type.
    case noResource(ObjectID, ResourceType, available: [ResourceType])
    /// The asset has no resource with the digest.
    case unknownDigest(ObjectID)
    /// The offset is beyond the end.
    case offsetOutOfRange(offset: Int64, size: Int64)
    /// The range does not fit into one response, which is never cut.
    case rangeTooLong(bytes: Int64, size: Int64)
    /// The stored file has another size than the resource needs.
    case damaged
    /// The stored file ended before the resource did.
    case truncated
    /// The resource does not fit into one response.
    case exportTooLarge(ObjectID, ResourceType, bytes: Int64)
    /// The bytes are only in remote storage, and the request does not allow network access.
    case networkAccessRequired(ResourceDigest)
    /// The bytes are only in remote storage, and could not be downloaded.
    case notDownloaded(ResourceDigest, ObjectStoreError)
    /// The library has no remote storage.
    case noRemoteStorage
    /// There would be too many unacknowledged jobs.
    case tooManyJobs(limit: Int)
    /// There is no job with the number.
    case noJob(Int64)
    /// The state of the job does not allow the action.
    case jobRefused(UploadJob, UploadJob.Action)
    /// The path of an export is not absolute.
    case exportPathNotAbsolute
    /// The path of an export is in the library's own folder.
    case exportInLibrary
    /// The file of an export was not written.
    case exportFailed(StorageError, path: String)

    /// True if no worker was free to read the bytes, so that a later attempt may succeed.
    var isTemporary: Bool {
        guard case .notRead(let failure, _, _) = self else { return false }
        return switch failure {
        case .queueFull, .unavailable, .cancelled: true
        default: false
        }
    }
}
