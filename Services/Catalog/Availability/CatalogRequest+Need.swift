import Contracts

extension CatalogRequest {
    /// The need of the request for the library. Requests that only decide about requests need nothing: the other services
    /// ask them for each of theirs.
    var need: LibraryAvailability.Need {
        switch self {
        case .discover, .health, .figures, .supports, .libraryStatus, .grantStatus, .releaseTransient, .cancelUpload,
            .pendingGrants, .listGrants:
            .nothing
        case .perform, .beginUpload, .appendUpload, .finishUpload, .downloadResource, .storageKeep, .storageRetry,
            .createJobs, .updateJobs,
            .collect, .rescan, .reportWorkerFault, .liftQuarantine, .approveGrant, .denyGrant, .limitGrant,
            .revokeGrant:
            .writing
        case .fetchAssets, .fetchCollections, .fetchLists, .counts, .find, .objects, .keyAssets, .duplicates, .can,
            .toCloud, .toLocal, .createTransient, .details, .difference, .fetchKeys, .since, .follow, .token,
            .editsStatus, .editsPending, .readResource, .exportResource, .storageStatus, .storageVerify, .listJobs,
            .backup,
            .listQuarantine, .openSession, .grantHistory:
            .reading
        }
    }
}
